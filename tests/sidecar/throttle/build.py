"""Short ways to write observations, and a clock that a test moves."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.memory import Memory
from sidecar.throttle.user_throttles import UserThrottles, throttle_users
from sidecar.volumes import (
    Failure,
    FailureKind,
    Membership,
    Observation,
    OfflineLogDir,
    Reading,
    Volume,
)

LONG_MAX = 2**63 - 1
"""What a huge file system reports."""

TIMED_OUT = Failure(FailureKind.TIMEOUT, "no answer within 2 s")


class FakeClock:
    """A clock that stands until it is moved."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def reading(
    broker_id: int,
    at: float,
    available: Mapping[str, int] | None = None,
    *,
    total: int = 100,
    offline: Collection[str] = (),
    unreadable: Collection[str] = (),
) -> Reading:
    """A broker's answer: log dir -> available bytes, of volumes of ``total`` bytes."""
    volumes = tuple(
        Volume(broker_id, log_dir, total, free) for log_dir, free in (available or {}).items()
    )
    missing = (
        *(OfflineLogDir(log_dir, "offline") for log_dir in offline),
        *(OfflineLogDir(log_dir, "error 999", is_written=True) for log_dir in unreadable),
    )
    return Reading(broker_id, at, volumes, missing)


def whole(
    at: float,
    answers: Collection[Reading] = (),
    *,
    silent: Collection[int] = (),
    fenced: Collection[int] | None = (),
    cluster_id: str | None = "A",
) -> Observation:
    """A whole observation: those who answered and the silent ones are the active brokers."""
    active = sorted({answer.broker_id for answer in answers} | set(silent))
    membership = Membership(
        cluster_id,
        {broker_id: f"host{broker_id}:9092" for broker_id in active},
        None if fenced is None else {broker_id: f"host{broker_id}:9092" for broker_id in fenced},
    )
    return Observation(at, "poll", membership, _answers(answers, silent))


def partial(
    at: float, answers: Collection[Reading] = (), *, silent: Collection[int] = ()
) -> Observation:
    """A partial observation: those who answered and the silent ones were asked."""
    return Observation(at, "poll", None, _answers(answers, silent))


def _answers(answers: Collection[Reading], silent: Collection[int]) -> dict[int, Reading | Failure]:
    reported: dict[int, Reading | Failure] = dict.fromkeys(silent, TIMED_OUT)
    reported.update({answer.broker_id: answer for answer in answers})
    return reported


def remembering(factors: VolumeLimit) -> Callable[..., Memory]:
    """Returns what is remembered after some observations, and ``memory`` before them."""

    def after(*observations: Observation, memory: Memory | None = None) -> Memory:
        return reduce(factors.fold, observations, memory or Memory())

    return after


def throttle_user(
    user_throttles: UserThrottles, user: str, ends_at: float, reason: str, now: float
) -> UserThrottles:
    """One more user, throttled for producer ids."""
    return throttle_users(user_throttles, "producer_ids", {user: (ends_at, reason)}, now)


def with_rules(factors: VolumeLimit, **changes: Any) -> VolumeLimit:
    """The same factor source with other rules: ``with_rules(factors, stop_line=...)``."""
    return replace(factors, rules=replace(factors.rules, **changes))
