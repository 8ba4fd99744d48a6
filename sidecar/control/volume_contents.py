"""The contents of brokers' volumes, read while a volume is near its limit or a page shows it.

Whoever shows a broker's volumes gets the last answer and requests a new read. One task reads one
broker at a time, and no broker more often than every ``EVERY_S``, whoever asks and whether or not
it answered. After each read, its volumes are split into parts (``sidecar.throttle.growth``), unless
all requests of the last ``STALE_S`` were without parts. An answer that nobody has requested for
``RETENTION_S`` is forgotten.

Example: three people have an open page, which is renewed every 10 s. Broker 2 is read once a
minute. After they close the page, the broker is no longer read.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from sidecar.kafka.largest_topics import LogDirTopics
from sidecar.threads import OwnThreads
from sidecar.throttle.arrivals import Arrivals, arrivals
from sidecar.throttle.growth import (
    LogDirReading,
    Partition,
    Placement,
    Replicas,
    Split,
    completed,
    largest,
    split,
)
from sidecar.volumes import Failure

EVERY_S: Final = 60.0
"""An answer has 88 kB and costs a broker 34 ms for 4,000 partitions, so reads are rare."""

STALE_S: Final = 3 * EVERY_S
"""What is older than this is no longer shown: it could not be read again."""

RETENTION_S: Final = 600.0

ContentsResult = Mapping[str, LogDirTopics] | Failure
"""Log dir -> its topics, or why they are not known."""

GetPlacement = Callable[[int, Sequence[str]], Awaitable[Placement | Failure]]
"""Reads from a broker, by id, where the partitions of some topics are, within its own deadline."""

_THREADS: Final = OwnThreads("growth of volumes")

FetchContents = Callable[[int], Awaitable[ContentsResult]]
"""Reads a broker, by id, within its own deadline."""


FetchReceiving = Callable[[int], Awaitable[frozenset[int] | Failure]]
"""Asks a broker, by id, for the brokers to which reassignments add replicas, within its own
deadline."""

FetchSizes = Callable[
    [Mapping[int, Mapping[str, Sequence[int]]]],
    Awaitable[Mapping[int, Sequence[Replicas] | Failure] | Failure],
]
"""Reads some partitions of each of these brokers at once, within its own deadline: for each of a
broker's log dirs topic -> sizes."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a broker's volumes.

    Attributes:
        result: the broker's answer.
        answered_at: when the answer came, steady seconds.
        splits: log dir -> its volume in parts, also while later reads fail; empty until known.
        before: the same after the read before.
        arrivals: log dir -> what still arrives there; empty until that is known.
        split_at: when the answer came whose parts these are, steady seconds; None until known.
        arriving: the partitions that a reassignment adds, as in ``Placement``; None until known.
    """

    result: ContentsResult
    answered_at: float
    splits: Mapping[str, Split] = field(default_factory=dict, compare=False)
    before: Mapping[str, Split] = field(default_factory=dict, compare=False)
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict, compare=False)
    split_at: float | None = field(default=None, compare=False)
    arriving: Mapping[Partition, tuple[int, ...]] | None = field(default=None, compare=False)


@dataclass(slots=True)
class _Broker:
    """What is known of a broker, and requested.

    Attributes:
        contents: its last answer; None before the first.
        readings: log dir -> its last reading, also while later reads fail.
        placements: its last placements, each with when it was read.
        asked_at: when its last read began, steady seconds; -inf before the first.
        in_parts_at: when its volumes in parts were requested last; -inf if they never were.
        arriving_at: the same for what arrives there.
    """

    contents: Contents | None = None
    readings: Mapping[str, LogDirReading] = field(default_factory=dict)
    placements: Sequence[tuple[float, Placement]] = ()
    asked_at: float = -math.inf
    in_parts_at: float = -math.inf
    arriving_at: float = -math.inf


@dataclass(slots=True)
class VolumeContents:
    """The last answers of the brokers that were requested; none at first.

    Attributes:
        ask: reads one broker.
        clock: steady seconds.
        place: reads placements; None to split no volume.
        every_s: the shortest time between two reads of a broker, seconds.
        receiving: asks where reassignments add replicas; None never asks.
    """

    ask: FetchContents
    clock: Callable[[], float]
    place: GetPlacement | None = None
    every_s: float = EVERY_S
    receiving: FetchReceiving | None = None
    _brokers: dict[int, _Broker] = field(default_factory=dict, init=False)
    _due: dict[int, None] = field(default_factory=dict, init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def request(
        self, broker_id: int, *, in_parts: bool = True, arriving: bool = True
    ) -> Contents | None:
        """Return a broker's last answer, if any, and request a new read if that is due.

        Without ``in_parts``, its volumes are split only if others request that, and without
        ``arriving`` too, what arrives is read only if others request that.
        """
        now, broker = self.clock(), self._brokers.setdefault(broker_id, _Broker())
        is_due = now >= broker.asked_at + self.every_s
        if in_parts:
            # A last read without parts is of no use to who needs them.
            is_due = is_due or broker.asked_at > broker.in_parts_at + STALE_S
            broker.in_parts_at = now
        if arriving:
            broker.arriving_at = now
        if is_due:
            self._due[broker_id] = None
            self._news.set()
        return self.known(broker_id)

    def known(self, broker_id: int) -> Contents | None:
        """Return a broker's last answer, if any, without a request."""
        broker = self._brokers.get(broker_id)
        known = None if broker is None else broker.contents
        return known if known and self.clock() <= known.answered_at + RETENTION_S else None

    async def run(self) -> NoReturn:
        """Reads the brokers that are due, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._due:
                broker_id = next(iter(self._due))
                broker = self._brokers[broker_id]
                broker.asked_at = self.clock()
                result = await self.ask(broker_id)
                del self._due[broker_id]
                answered_at = self.clock()
                before = broker.contents or Contents(result, answered_at)
                # The last splits stay until the next ones are known.
                contents = replace(before, result=result, answered_at=answered_at)
                if self.place is not None and not isinstance(result, Failure):
                    contents = await self._split(broker_id, broker, contents, result, self.place)
                broker.contents = contents
            self._forget()

    async def _split(
        self,
        broker_id: int,
        broker: _Broker,
        contents: Contents,
        result: Mapping[str, LogDirTopics],
        place: GetPlacement,
    ) -> Contents:
        read_at = broker.asked_at
        earlier = {
            log_dir: reading
            for log_dir, reading in broker.readings.items()
            if read_at <= reading.read_at + RETENTION_S
        }
        broker.readings = later = {
            log_dir: LogDirReading(topics.used_bytes, topics.packed, read_at)
            for log_dir, topics in result.items()
        }
        in_parts = read_at <= broker.in_parts_at + STALE_S
        if not (in_parts or read_at <= broker.arriving_at + STALE_S):
            broker.placements = ()
            return Contents(result, contents.answered_at, before=contents.splits)
        named: Mapping[str, Sequence[str]] = {}
        topics: set[str] = set()
        if in_parts:
            # Many partitions take a while, in which the event loop has other work.
            named = await _THREADS.call(_named, earlier, later)
            shown = ([each.topic for each in found.largest] for found in result.values())
            topics = set().union(*named.values(), *shown)
        placement = await place(broker_id, sorted(topics))
        if isinstance(placement, Failure):
            placement = Placement()
        recent = [(at, each) for at, each in broker.placements if read_at <= at + STALE_S]
        broker.placements = [*recent, (read_at, placement)]
        placement = completed([each for _, each in broker.placements])
        splits: Mapping[str, Split] = {}
        arriving: Mapping[str, Arrivals] = {}
        if in_parts:
            splits, arriving = await _THREADS.call(
                _splits, earlier, later, broker_id, named, placement
            )
        return replace(
            contents,
            splits=splits,
            before=contents.splits,
            arrivals=arriving,
            split_at=contents.answered_at if in_parts else None,
            arriving=placement.arriving,
        )

    def _forget(self) -> None:
        now = self.clock()
        self._brokers = {
            broker_id: broker
            for broker_id, broker in self._brokers.items()
            if now <= broker.asked_at + RETENTION_S
        }


def _named(
    earlier: Mapping[str, LogDirReading], later: Mapping[str, LogDirReading]
) -> dict[str, list[str]]:
    return {log_dir: largest(earlier.get(log_dir), reading) for log_dir, reading in later.items()}


def _splits(
    earlier: Mapping[str, LogDirReading],
    later: Mapping[str, LogDirReading],
    broker_id: int,
    named: Mapping[str, Sequence[str]],
    placement: Placement,
) -> tuple[dict[str, Split], dict[str, Arrivals]]:
    splits = {
        log_dir: split(earlier.get(log_dir), reading, broker_id, named[log_dir], placement)
        for log_dir, reading in later.items()
    }
    return splits, arrivals({path: each.replicas for path, each in later.items()}, placement)
