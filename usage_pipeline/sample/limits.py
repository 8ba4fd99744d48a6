"""The quotas of the generated cluster, which depend on the sample's traffic.

Rates follow from the size and the hours, and so do the quotas. Each quota is a multiple of its
tenant's average rate, so that it limits bursts for all sizes. An ALTER_CLIENT_QUOTAS raises alice's
quota at half time.

Example: 100 MB over 2 h on 3 brokers are 5 lines a second on each. Alice's 26 of 93 lines are 1.4 a
second with 21 kB each, 30 kB/s, and her quota is twice that.
"""

from dataclasses import dataclass
from typing import Final

from sidecar.quotas.entities import QuotaKey
from usage_pipeline.sample.flows import Flow, flows
from usage_pipeline.sample.settings import Sample

LINE_BYTES: Final = 1090
"""The approximate length of a line."""
RAISED: Final = 1.5
"""The factor for alice's quota at half time."""
MUTATIONS: Final = 0.5
"""Partitions per second for grace, whose bucket holds 5.5."""

_TIMES_MEAN: Final = {
    ("alice", QuotaKey.PRODUCE): 1.6,
    ("carol", QuotaKey.FETCH): 1.5,
    ("edge", QuotaKey.REQUEST): 1.6,
}
_LOCAL_MS: Final = 1.28
"""The mean of the prepared durations, which multiply a shape's ``local_ms``."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A user's quota."""

    user: str
    key: QuotaKey
    value: float


def limits(sample: Sample) -> tuple[Limit, ...]:
    """Return the initial quotas for PRODUCE, FETCH and request time."""
    return tuple(
        Limit(user, key, _round(factor * _mean(sample, user, key)))
        for (user, key), factor in _TIMES_MEAN.items()
    )


def charged_key(flow: Flow) -> QuotaKey | None:
    """Return the quota that applies to a flow, or None."""
    key = QuotaKey.FETCH if flow.shape.api == "FETCH" else QuotaKey.PRODUCE
    if (flow.user, key) in _TIMES_MEAN:
        return key if flow.records else None
    is_limited = (flow.user, QuotaKey.REQUEST) in _TIMES_MEAN and not flow.is_exempt
    return QuotaKey.REQUEST if is_limited else None


def _mean(sample: Sample, user: str, key: QuotaKey) -> float:
    """Return a user's average charge on a broker, per second."""
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
    """Round to three digits, as an operator would set the quota."""
    return float(f"{value:.3g}")
