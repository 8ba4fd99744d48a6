"""The whole daemon in the test's own process."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import httpx

from sidecar.api.connections import Connections
from sidecar.daemon.composition import Composition, compose
from sidecar.daemon.daemon import serve
from sidecar.daemon.machine import Machine
from sidecar.settings import load

ENVIRON: Final[Mapping[str, str]] = {
    "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "127.0.0.1:1",
    "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": "10",
    "SIDECAR_STORAGE_CHECK_INTERVAL": "PT0.1S",
    "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": "PT0.1S",
    "SIDECAR_HTTP_LISTEN": "127.0.0.1:0",
}


@asynccontextmanager
async def composed(
    environ: Mapping[str, str], machine: Machine | None = None
) -> AsyncIterator[tuple[Composition, httpx.AsyncClient]]:
    """A daemon that runs, with these settings and those above, and a client of its API."""
    settings = load(environ={**ENVIRON, **environ}).settings
    parts = await compose(settings, lambda: settings, Connections(10), machine)
    stop = asyncio.Event()
    task = asyncio.create_task(serve(parts, stop))
    url = f"http://{parts.servers[0].address}"
    try:
        async with httpx.AsyncClient(base_url=url, timeout=10) as client:
            yield parts, client
        assert not task.done()
    finally:
        # Cut off it would leave what capabilities have open.
        stop.set()
        await task
