"""The checks of ``demo-pipeline``: the pipeline's tables and advice against clients and brokers.

The module is pure: it makes checks from values. A broker stamps a line after it has made the line's
JSON, so a replay may use a time up to 50 ms later than the broker's own. While a rate falls, the
wait is then shorter by about the same time.

Example: alice's clients counted 6 requests with 18,001,457 bytes, and gold_usage_1s has 6 with
18,000,732 bytes. The requests are equal, and the bytes differ by less than 1 %.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from usage_pipeline.cli.summary import counted

Client = tuple[str, str, str]
"""Quota type, user and client-id."""

_CLOCK_MS: Final = 50
_NEAR: Final = 0.05
_OTHER_TIMES_MS: Final = 500
"""The allowed difference of waits when the same traffic is sent again, because requests come
earlier or later. On a busy machine, 2.27 s were reported where 2.56 s had been predicted."""
_BYTES: Final = 0.01
_LONGER_WAIT: Final = 0.1
_LONGER_JOB: Final = 0.05
_WINDOW_S: Final = 11
"""Kafka divides the bytes of its window by at least 10 s; with the current second, it has 11."""
_MOST: Final = 0.95


@dataclass(frozen=True, slots=True)
class Amount:
    """The amount that a client sent or received."""

    requests: int
    bytes: float


@dataclass(frozen=True, slots=True)
class Wait:
    """A request's wait, in the broker's log and according to the replay."""

    logged_throttle_ms: int
    predicted_ms: int

    @property
    def is_near(self) -> bool:
        """Return whether both are throttled or not, within 5 % or the clocks' difference."""
        if (self.logged_throttle_ms > 0) != (self.predicted_ms > 0):
            return max(self.logged_throttle_ms, self.predicted_ms) <= _CLOCK_MS
        return abs(self.logged_throttle_ms - self.predicted_ms) <= max(
            _CLOCK_MS, _NEAR * self.logged_throttle_ms
        )


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of an entity in a round."""

    throttled: int
    total_ms: int


@dataclass(frozen=True, slots=True)
class Job:
    """A tenant's jobs without a quota, and again under the recommended one.

    Attributes:
        predicted_ms: the longest wait of the recommendation.
        longest_wait_s: the longest throttle time that the brokers sent.
        before_s: the time of the longest job without a quota.
        after_s: the time of the longest job under the quota.
    """

    predicted_ms: int
    longest_wait_s: float
    before_s: float
    after_s: float


@dataclass(frozen=True, slots=True)
class Excess:
    """What a tenant sent at five times its usual rate.

    Attributes:
        quota: the recommended quota, bytes a second.
        bytes: what the broker took.
        took_s: the time from the first request to the last response.
    """

    quota: float
    bytes: float
    took_s: float


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that must hold."""

    title: str
    expected: str
    seen: str
    holds: bool


def usage_checks(sent: Mapping[Client, Amount], usage: Mapping[Client, Amount]) -> list[Check]:
    """Check each client: equal requests, and bytes within 1 %."""
    checks = []
    for client, expected in sent.items():
        seen = usage.get(client, Amount(0, 0.0))
        near = abs(seen.bytes - expected.bytes) <= _BYTES * expected.bytes
        checks.append(
            Check(
                f"{client[0]} usage of {client[1]}/{client[2]}",
                _amount(expected),
                _amount(seen),
                near and seen.requests == expected.requests,
            )
        )
    return checks


def replay_checks(waits: Sequence[Wait]) -> list[Check]:
    """Check that 95 % of the throttled requests agree, and the total within 5 %."""
    throttled = [wait for wait in waits if wait.logged_throttle_ms or wait.predicted_ms]
    near = sum(wait.is_near for wait in throttled)
    logged_throttle_ms = sum(wait.logged_throttle_ms for wait in throttled)
    predicted_ms = sum(wait.predicted_ms for wait in throttled)
    return [
        Check(
            "requests that were throttled, each with its wait",
            f"{sum(wait.logged_throttle_ms > 0 for wait in throttled)} of {len(waits)}",
            f"{near} of {len(throttled)} agree",
            bool(throttled) and near >= _MOST * len(throttled),
        ),
        Check(
            "all waits together",
            _seconds(logged_throttle_ms),
            _seconds(predicted_ms),
            abs(predicted_ms - logged_throttle_ms) <= _NEAR * logged_throttle_ms,
        ),
    ]


def doubled_checks(replayed: Mapping[str, Waits], by_brokers: Mapping[str, Waits]) -> list[Check]:
    """Compare the replay of doubled quotas with the brokers' waits under them, by entity."""
    none = Waits(0, 0)
    checks = []
    for entity in sorted(replayed.keys() | by_brokers.keys()):
        expected, seen = by_brokers.get(entity, none), replayed.get(entity, none)
        most_ms = max(_NEAR * expected.total_ms, _OTHER_TIMES_MS * expected.throttled)
        checks.append(
            Check(
                f"doubled quota of {entity}",
                f"{expected.throttled} throttled, {_seconds(expected.total_ms)}",
                f"{seen.throttled} throttled, {_seconds(seen.total_ms)}",
                expected.throttled == seen.throttled
                and abs(expected.total_ms - seen.total_ms) <= most_ms,
            )
        )
    return checks


def advice_checks(jobs: Mapping[str, Job]) -> list[Check]:
    """Check waits, which may be 10 % longer than predicted, and jobs, 5 % longer than before."""
    checks = []
    for tenant, job in jobs.items():
        most_ms = max(_CLOCK_MS, (1 + _LONGER_WAIT) * job.predicted_ms)
        most_s = (1 + _LONGER_JOB) * job.before_s
        checks += [
            Check(
                f"longest wait of {tenant} under its new quotas",
                f"{job.longest_wait_s:.2f} s",
                f"at most {most_ms / 1000:.2f} s",
                job.longest_wait_s * 1000 <= most_ms,
            ),
            Check(
                f"longest job of {tenant} under its new quotas",
                f"{job.after_s:.2f} s",
                f"at most {most_s:.2f} s",
                job.after_s <= most_s,
            ),
        ]
    return checks


def excess_check(tenant: str, excess: Excess) -> Check:
    """Check that the tenant had its quota, and before that at most a window's part of it."""
    most = excess.quota * (excess.took_s + _WINDOW_S) / excess.took_s
    rate = excess.bytes / excess.took_s
    return Check(
        f"rate of {tenant} with five times its traffic",
        f"{rate:,.0f} bytes/s for {excess.took_s:.1f} s",
        f"at most {most:,.0f} bytes/s",
        rate <= most,
    )


def _amount(amount: Amount) -> str:
    return f"{counted(amount.requests, 'request')}, {amount.bytes:,.0f} bytes"


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.2f} s"
