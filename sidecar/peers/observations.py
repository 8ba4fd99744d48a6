"""The observations of an observer, for its followers, which do not ask the brokers themselves.

An observer sends one whole observation in each interval. In between, it sends partial observations
of brokers with a volume near its limit. Each observation is encoded once for all followers.

Times are sent as ages at the moment of the answer, so clocks of two machines are never compared. A
follower subtracts an age from the earliest possible time of the answer by its own clock: the time
of its request plus the wait that the answer reports. So an answer that travels for long never makes
a reading younger than it is.

Example: 3 s after a whole observation, a follower asks for new observations. The observer answers
at once, with ``age_ms`` 3000 and every broker. The next request waits for the next observation.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from sidecar.volumes import (
    Failure,
    FailureKind,
    Membership,
    Observation,
    OfflineLogDir,
    Reading,
    Volume,
)

PATH: Final = "/v1/observations"
MOST_PARTIAL: Final = 1000
"""The most partial observations that are kept: a quarter of an hour of one a second."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_NodeId = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class SeenVolume(msgspec.Struct, frozen=True, array_like=True):
    """A volume as it was read: log dir, total and available bytes."""

    log_dir: str
    total_bytes: _Count
    available_bytes: _Count


class SeenBroker(msgspec.Struct, frozen=True, omit_defaults=True):
    """A broker's answer."""

    broker: _NodeId
    before_ms: _Count
    """The time from the request to this broker until the observation was complete."""
    volumes: list[SeenVolume]
    offline: list[tuple[str, str, bool]] = []
    """Log dirs without sizes, with the reasons, and whether the broker may write there."""
    cordoned: list[str] = []
    """Log dirs in which Kafka puts no new partition."""


class SilentBroker(msgspec.Struct, frozen=True):
    """The failure of a broker."""

    broker: _NodeId
    kind: FailureKind
    message: str


class SeenMembers(msgspec.Struct, frozen=True):
    """The brokers of the cluster."""

    cluster_id: str | None
    active: dict[_NodeId, str]
    fenced: dict[_NodeId, str] | None


class SeenObservation(msgspec.Struct, frozen=True):
    """An observation; a whole one has members."""

    members: SeenMembers | None
    brokers: list[SeenBroker]
    silent: list[SilentBroker]


class AgedObservation(msgspec.Struct, frozen=True):
    """An observation with its age."""

    age_ms: _Count
    seen: SeenObservation


class ObservationPage(msgspec.Struct, frozen=True):
    """The new observations."""

    origin: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z]{1,100}\Z")]
    """The start id of the observer."""
    next: _Count
    """The number of the next observation."""
    held_ms: _Count
    """The time from the request to this answer."""
    due_ms: _Count
    """The time until the next observation should come."""
    observations: list[AgedObservation]
    cluster_id: str | None = None
    """The cluster of its last whole observation; partial ones have no id of their own."""


class ObservationLog:
    """This sidecar's last whole observation, and the partial ones since.

    Attributes:
        start_id: differs at every start.
        followed_at: when a follower last asked, steady seconds; None if none asked.
        due_at: when the next observation should come, steady seconds.
    """

    def __init__(self, start_id: str, clock: Callable[[], float]) -> None:
        self.start_id = start_id
        self.followed_at: float | None = None
        self.due_at = clock()
        self._clock = clock
        # For each observation: its number, its time, and its encoded form.
        self._seen: deque[tuple[int, float, msgspec.Raw]] = deque(maxlen=MOST_PARTIAL)
        self._next = 0
        self._cluster_id: str | None = None
        self._more = asyncio.Event()

    def plan(self, due_at: float) -> None:
        """Set when the next observation should come, steady seconds."""
        self.due_at = due_at

    def add(self, observation: Observation) -> None:
        """Add an observation of this sidecar."""
        if observation.membership is not None:
            self._seen.clear()
            self._cluster_id = observation.membership.cluster_id
        sent = msgspec.Raw(msgspec.json.encode(_sent(observation)))
        self._seen.append((self._next, observation.observed_at, sent))
        self._next += 1
        self._more.set()
        self._more = asyncio.Event()

    def page(self, after: int | None, asked_at: float | None = None) -> bytes:
        """Return the observations since the follower's last page, an ``ObservationPage`` as JSON.

        Args:
            after: ``next`` of that page; None if the follower has no page of this start.
            asked_at: when the request came, steady seconds; None for now.
        """
        now = self._clock()
        held_s = 0.0 if asked_at is None else now - asked_at
        self.followed_at = now
        first = 0 if after is None else after
        return msgspec.json.encode(
            {
                "origin": self.start_id,
                "next": self._next,
                "cluster_id": self._cluster_id,
                # Rounded down, so that no reading becomes younger.
                "held_ms": int(held_s * 1000),
                "due_ms": _ms(self.due_at - now),
                "observations": [
                    {"age_ms": _ms(now - observed_at), "seen": seen}
                    for number, observed_at, seen in self._seen
                    if number >= first
                ],
            }
        )

    async def wait_for_more(self, after: int) -> None:
        """Wait until ``page`` has observations after a place."""
        self.followed_at = self._clock()
        while after >= self._next:
            await self._more.wait()


def received(sent: AgedObservation, origin: str, now: float) -> Observation:
    """Convert an observation of another sidecar to this sidecar's time.

    Args:
        sent: the observation as it was sent.
        origin: the observer.
        now: the earliest possible time of the answer, steady seconds.
    """
    observed_at = now - sent.age_ms / 1000
    seen = sent.seen
    answers: dict[int, Reading | Failure] = {
        each.broker: Reading(
            each.broker,
            observed_at - each.before_ms / 1000,
            tuple(
                Volume(each.broker, volume.log_dir, volume.total_bytes, volume.available_bytes)
                for volume in each.volumes
            ),
            tuple(OfflineLogDir(*log_dir) for log_dir in each.offline),
            tuple(each.cordoned),
        )
        for each in seen.brokers
    }
    answers |= {each.broker: Failure(each.kind, each.message) for each in seen.silent}
    members = None
    if seen.members is not None:
        members = Membership(seen.members.cluster_id, seen.members.active, seen.members.fenced)
    return Observation(observed_at, origin, members, answers)


def _sent(observation: Observation) -> SeenObservation:
    membership = observation.membership
    answers = observation.answers.items()
    return SeenObservation(
        None
        if membership is None
        else SeenMembers(
            membership.cluster_id,
            dict(membership.active),
            None if membership.fenced is None else dict(membership.fenced),
        ),
        [
            _broker(each, observation.observed_at)
            for _, each in answers
            if isinstance(each, Reading)
        ],
        [
            SilentBroker(broker_id, each.kind, each.message)
            for broker_id, each in answers
            if isinstance(each, Failure)
        ],
    )


def _broker(reading: Reading, observed_at: float) -> SeenBroker:
    return SeenBroker(
        reading.broker_id,
        _ms(observed_at - reading.read_at),
        [
            SeenVolume(each.log_dir, each.total_bytes, each.available_bytes)
            for each in reading.volumes
        ],
        [(each.log_dir, each.reason, each.is_written) for each in reading.offline],
        list(reading.cordoned),
    )


def _ms(seconds: float) -> int:
    """Convert seconds to ms, rounded up, so that no reading becomes younger."""
    return max(0, math.ceil(seconds * 1000))
