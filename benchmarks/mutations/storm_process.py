"""The storm in a process of its own: ``python -m benchmarks.mutations.storm_process``.

The answers name every setting of every topic, some 3 KB each, and others' operations must not wait
for the time that reading them takes. The order comes as JSON on standard input, the requests go as
JSON to standard output. Times there are ``time.monotonic()``, one clock for all processes of a
machine, and the loop's own.

Example: an answer for 50 topics is 150 KB, and 10 of them a second would take a tenth of a core
from who measures.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from benchmarks.mutations.clients import Clients
from benchmarks.mutations.course import Request
from benchmarks.mutations.portal import Portal
from benchmarks.mutations.storm import Load, Storm
from sidecar.errors import ClusterError

READY: Final = 20
"""Connections from the beginning."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the process does.

    Attributes:
        load: what is sent.
        brokers: "host:port" of each.
        user: who it logs in as.
        begin: the first tick, ``time.monotonic()`` seconds.
        patience_s: how long an answer is waited for.
        ask_url: the sidecar that is asked before Kafka is; None: nobody.
        ask_for: the user that it is asked for.
    """

    load: Load
    brokers: Sequence[str]
    user: str
    begin: float
    patience_s: float
    ask_url: str | None
    ask_for: str

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        """From the JSON of it."""
        return cls(**(document | {"load": Load(**document["load"])}))


async def storm(order: Order) -> list[Request]:
    """Start the process, and wait for its end; cancelling this kills it.

    Raises:
        ClusterError: it failed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        said, _ = await process.communicate(json.dumps(asdict(order)).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ClusterError(f"the storm ended with {process.returncode}")
    return [Request(**each) for each in json.loads(said)]


async def _run(order: Order) -> list[Request]:
    portal = Portal(order.ask_url, order.ask_for, order.user) if order.ask_url else None
    async with Clients(order.brokers, order.user, READY) as clients:
        ask = None if portal is None else portal.admitted
        return await Storm(order.load, clients, ask, order.patience_s).run(order.begin)


def _main() -> None:
    # It tells of every login.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    done = asyncio.run(_run(Order.read(json.load(sys.stdin))))
    json.dump([asdict(each) for each in done], sys.stdout)


if __name__ == "__main__":
    _main()
