"""What each broker's quota callback says of itself, read by JMX while brokers end and start again.

``CallbackWatch`` runs ``FollowBeans.java`` in a JVM of its own, which answers to signals of nobody
else: an interrupt is for this process, which ends it.

Example: ``watch.follow(0, pid)`` once broker 0 has started, ``watch.lose(0)`` before it ends, and
``watch.seen(0)`` is what its callback said in the last seconds, or None; ``watch.figures(0)`` is
the same with whatever more was asked for.
"""

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from kafka_lab.cache import cache_folder
from kafka_lab.jars import DEFAULT_VERSION, jars, java
from tests.chaos.samples import CallbackSight
from tests.support.java import compiled

_BEAN: Final = "throttlesidecar:type=QuotaCallback"
_ATTRIBUTES: Final = (
    "Source",
    "FactorApplied",
    "Regime",
    "DocumentAgeMs",
    "Emergency",
    "LongestPauseMs",
)
_INTERVAL_MS: Final = 500
_SILENT_S: Final = 2.5
"""What is older is no news."""
_END_TIMEOUT_S: Final = 10.0


class CallbackWatch:
    """Reads the callbacks from entry to exit of its async context."""

    def __init__(self, more: Sequence[str] = ()) -> None:
        """Nothing is read yet; ``more`` are names of attributes besides those of a sight."""
        self._last: dict[int, tuple[float, dict[str, Any]]] = {}
        self._attributes = (*_ATTRIBUTES, *more)
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
        words += ["-cp", str(classes), "FollowBeans", str(_INTERVAL_MS), _BEAN, *self._attributes]
        self._process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._read(self._process), name="callbacks")
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

    def seen(self, broker_id: int) -> CallbackSight | None:
        """What a callback said last; None: nothing of late."""
        figures = self.figures(broker_id)
        return None if figures is None else _sight(figures)

    def figures(self, broker_id: int) -> Mapping[str, Any] | None:
        """The same, all attributes by their names."""
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


def _sight(document: Mapping[str, Any]) -> CallbackSight:
    return CallbackSight(
        source=document["Source"],
        factor=document["FactorApplied"],
        regime=document["Regime"],
        age_s=document["DocumentAgeMs"] / 1000,
        emergency=document["Emergency"],
        longest_pause_s=document["LongestPauseMs"] / 1000,
    )
