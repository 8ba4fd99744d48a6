"""Which quotas the made-up cluster has: by the traffic that the sample is to have.

Rates follow from the size and the hours, so the quotas do too: each is a multiple of what its
tenant uses on average, so that it holds bursts at all sizes. Alice's is raised at half time by an
ALTER_CLIENT_QUOTAS.

Example: 100 MB over 2 h of 3 brokers are 5 lines a second and broker; alice's 26 of 93 are 1.4 with
21 kB each, 30 kB/s, and her quota is twice that.
"""

from dataclasses import dataclass
from typing import Final

from sidecar.quotas.entities import QuotaKey
from usage_pipeline.sample.flows import Flow, flows
from usage_pipeline.sample.settings import Sample

LINE_BYTES: Final = 1090
"""A line, about."""
RAISED: Final = 1.5
"""What alice's quota is multiplied with at half time."""
MUTATIONS: Final = 0.5
"""Partitions per second for grace, who has a bucket of 5.5."""

_TIMES_MEAN: Final = {
    ("alice", QuotaKey.PRODUCE): 1.6,
    ("carol", QuotaKey.FETCH): 1.5,
    ("edge", QuotaKey.REQUEST): 1.6,
}
_LOCAL_MS: Final = 1.28
"""The mean of the prepared times, by which a shape's ``local_ms`` is multiplied."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A user's quota."""

    user: str
    key: QuotaKey
    value: float


def limits(sample: Sample) -> tuple[Limit, ...]:
    """The quotas at the start that hold PRODUCE, FETCH and request time."""
    return tuple(
        Limit(user, key, _round(factor * _mean(sample, user, key)))
        for (user, key), factor in _TIMES_MEAN.items()
    )


def charged_key(flow: Flow) -> QuotaKey | None:
    """The quota that holds a flow; None: none does."""
    key = QuotaKey.FETCH if flow.shape.api == "FETCH" else QuotaKey.PRODUCE
    if (flow.user, key) in _TIMES_MEAN:
        return key if flow.records else None
    is_limited = (flow.user, QuotaKey.REQUEST) in _TIMES_MEAN and not flow.is_exempt
    return QuotaKey.REQUEST if is_limited else None


def _mean(sample: Sample, user: str, key: QuotaKey) -> float:
    """What a user is charged with on a broker, per second on average."""
    everyone = flows(sample.brokers, sample.clients)
    lines = sample.size_bytes / LINE_BYTES / sample.brokers / sample.seconds
    shares = sum(flow.share for flow in everyone)
    mine = (flow for flow in everyone if flow.user == user and charged_key(flow) is key)
    each = (
        flow.share
        * (flow.shape.local_ms * _LOCAL_MS / 10 if key is QuotaKey.REQUEST else flow.records)
        for flow in mine
    )
    return lines * sum(each) / shares


def _round(value: float) -> float:
    """To three digits: what an operator would have set."""
    return float(f"{value:.3g}")
