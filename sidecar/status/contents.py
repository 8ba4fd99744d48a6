"""The contents of brokers' volumes for the status page, read only while a page is open.

A page that shows a broker's volumes gets the last answer and requests a new read. One task reads
one broker at a time, and no broker more often than every ``EVERY_S``, whether or not it answered.
An answer that no page has requested for ``RETENTION_S`` is forgotten.

Example: three people have an open page, which is renewed every 10 s. Broker 2 is read once a
minute. After they close the page, the broker is no longer read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from sidecar.kafka.largest_topics import LogDirTopics
from sidecar.volumes import Failure

EVERY_S: Final = 60.0
"""An answer has 88 kB and costs a broker 34 ms for 4,000 partitions, so reads are rare."""

RETENTION_S: Final = 600.0

ContentsResult = Mapping[str, LogDirTopics] | Failure
"""Log dir -> its topics, or why they are not known."""

FetchContents = Callable[[int], Awaitable[ContentsResult]]
"""Reads a broker, by id, within its own deadline."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a broker's volumes.

    Attributes:
        result: the broker's answer.
        answered_at: when the answer came, steady seconds.
    """

    result: ContentsResult
    answered_at: float


class VolumeContents:
    """The last answers of the brokers that open pages show; none at first."""

    def __init__(self, ask: FetchContents, clock: Callable[[], float]) -> None:
        """Start without answers.

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
        """Return a broker's last answer, if any, and request a new read if that is due."""
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
                result = await self._ask(broker_id)
                del self._due[broker_id]
                self._known[broker_id] = Contents(result, self._clock())
            self._forget()

    def _forget(self) -> None:
        now = self._clock()
        for broker_id in [each for each, at in self._requested.items() if now > at + RETENTION_S]:
            del self._requested[broker_id]
            self._known.pop(broker_id, None)
