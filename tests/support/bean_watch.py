"""One MBean of several brokers, read again and again while brokers end and start again.

``BeanWatch`` runs ``FollowBeans.java`` in a JVM of its own. That JVM gets no signal of this
process's terminal: an interrupt is for this process, which ends it.

Example: ``watch.follow(0, pid)`` once broker 0 has started, ``watch.lose(0)`` before it ends, and
``watch.figures(0)`` is what its MBean had in the last seconds, or None.
"""

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from kafka_lab.jars import DEFAULT_VERSION, jars, java
from sidecar.formats.cache_folder import cache_folder
from tests.support.java import compiled

INTERVAL_MS: Final = 500
_SILENT_S: Final = 2.5
"""What is older is not reported."""
_END_TIMEOUT_S: Final = 10.0


class BeanWatch:
    """Reads the MBean from entry to exit of its async context."""

    def __init__(self, bean: str, attributes: Sequence[str]) -> None:
        """Nothing is read yet."""
        self._last: dict[int, tuple[float, dict[str, Any]]] = {}
        self._words = [str(INTERVAL_MS), bean, *attributes]
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start it.

        Raises:
            ClusterError: there is no JDK, or the program does not compile.
        """
        libraries = await jars(DEFAULT_VERSION, cache_folder(os.environ))
        classes = await compiled("FollowBeans", libraries)
        words = [java(os.environ), "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._process = await asyncio.create_subprocess_exec(
            *words,
            "-cp",
            str(classes),
            "FollowBeans",
            *self._words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._read(self._process), name="beans")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is None or self._reading is None:
            return
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await asyncio.wait_for(self._reading, _END_TIMEOUT_S)

    def follow(self, broker_id: int, pid: int) -> None:
        """A broker has started."""
        self._name(broker_id, pid)

    def lose(self, broker_id: int) -> None:
        """A broker ends, or is frozen for so long that nothing is to be asked of it."""
        self._name(broker_id, 0)
        self._last.pop(broker_id, None)

    def figures(self, broker_id: int) -> Mapping[str, Any] | None:
        """The attributes by their names, as they were read last; None: not of late."""
        at, figures = self._last.get(broker_id, (0.0, None))
        return figures if time.monotonic() - at <= _SILENT_S else None

    def _name(self, broker_id: int, pid: int) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(f"{broker_id} {pid}\n".encode())

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            document = json.loads(line)
            self._last[int(document["name"])] = (time.monotonic(), document)
