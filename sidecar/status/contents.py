"""What lies on brokers' volumes, read only while a page is open, and rarely.

A page that shows a broker's volumes gets what is known and makes a read due; one task reads one
broker at a time, no broker more often than every ``EVERY_S``, whether it answered or not. What no
page has requested for ``RETENTION_S`` is forgotten.

Example: three people have a page open that is renewed every 10 s: broker 2 is read once a minute.
They close it: it is read no more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from sidecar.errors import SidecarError
from sidecar.kafka.largest_topics import LogDirTopics
from sidecar.volumes import Failure, FailureKind

EVERY_S: Final = 60.0
"""The answer grows with the broker's partitions: 88 kB and 34 ms of it for 4,000."""

RETENTION_S: Final = 600.0

ContentsResult = Mapping[str, LogDirTopics] | Failure
"""Log dir -> what lies there, or why that is not known."""

FetchContents = Callable[[int], Awaitable[ContentsResult]]
"""Broker id -> its answer, within a deadline of its own."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies on a broker's volumes.

    Attributes:
        result: its answer.
        answered_at: when, steady seconds.
    """

    result: ContentsResult
    answered_at: float


class VolumeContents:
    """What is known of brokers that open pages show. Initially nothing."""

    def __init__(self, ask: FetchContents, clock: Callable[[], float]) -> None:
        """Nothing is read yet.

        Args:
            ask: reads one broker.
            clock: steady seconds.
        """
        self._ask = ask
        self._clock = clock
        self._known: dict[int, Contents] = {}
        # Broker id -> when its last read began.
        self._requested: dict[int, float] = {}
        self._due: dict[int, None] = {}
        self._news = asyncio.Event()

    def of(self, broker_id: int) -> Contents | None:
        """What is known of a broker, which is read anew if that is due; None before it answers."""
        asked_at = self._requested.get(broker_id)
        if asked_at is None or self._clock() >= asked_at + EVERY_S:
            self._due[broker_id] = None
            self._news.set()
        known = self._known.get(broker_id)
        return known if known and self._clock() <= known.answered_at + RETENTION_S else None

    async def run(self) -> NoReturn:
        """Reads the brokers that are due, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._due:
                broker_id = next(iter(self._due))
                self._requested[broker_id] = self._clock()
                try:
                    result = await self._ask(broker_id)
                except SidecarError as error:
                    # A password file can't be read now; polls still use the password that was read
                    # before.
                    result = Failure(FailureKind.AUTHENTICATION, " ".join(str(error).split()))
                del self._due[broker_id]
                self._known[broker_id] = Contents(result, self._clock())
            self._forget()

    def _forget(self) -> None:
        now = self._clock()
        for broker_id in [each for each, at in self._requested.items() if now > at + RETENTION_S]:
            del self._requested[broker_id]
            self._known.pop(broker_id, None)
