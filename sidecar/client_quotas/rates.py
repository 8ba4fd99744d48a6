"""The most that clients write to one broker, by what shares a quota.

Clients share a quota by user, by client-id, or by both (``sidecar.quotas.entities``). For each
broker, the first of these sources that there is tells how much they write:

1. Its request log, if the sidecar beside it has read that without a gap for a minute
   (``sidecar.client_quotas.written``). Sidecars tell each other during a throttle
   (``sidecar.client_quotas.log_watch``).
2. The broker's metrics, if it has an address in SIDECAR_BROKER_METRICS_URLS
   (``sidecar.client_quotas.broker_metrics``).
3. The broker's fill rate: no client writes more to a broker than the broker fills, unless
   segments are deleted meanwhile. With N equal clients that is N times too much.

The highest rate of the last 15 minutes counts (``sidecar.throttle.peak``).

Example: six clients write 3 MB/s each to the only broker. By the log a client-id writes 3 MB/s, so
the first quota is 6 MB/s. By the fill rate it may be 18 MB/s, so the first quota is 36 MB/s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.quotas.entities import Entity

_SHAPES: Final = ("user", "client_id", "both")


@dataclass(frozen=True, slots=True)
class Rates:
    """The most that clients which share a quota write to one broker, bytes/s; None if not known.

    Attributes:
        user: those of one user.
        client_id: those with one client-id.
        both: those of one user with one client-id.
        by_log: the brokers whose request logs tell; None for this sidecar's, if it does not know
            which broker that is.
        by_metrics: the brokers whose metrics tell.
        by_fill: the brokers of which only the fill rate tells.
        measured: the names of the attributes above that are not by fill rates alone.
    """

    user: float | None = None
    client_id: float | None = None
    both: float | None = None
    by_log: tuple[int | None, ...] = ()
    by_metrics: tuple[int, ...] = ()
    by_fill: tuple[int, ...] = ()
    measured: frozenset[str] = frozenset()

    def rate_of(self, entity: Entity) -> float | None:
        """Return the rate that counts for a quota."""
        rate: float | None = getattr(self, _shape(entity))
        return rate

    def later(self, entity: Entity) -> float | None:
        """Return the rate that counts for a quota which is lowered already."""
        return self.rate_of(entity) if _shape(entity) in self.measured else None


def of_cluster(
    fills: Mapping[int, float],
    logs: Mapping[int | None, Rates],
    metrics: Mapping[int, Rates],
) -> Rates:
    """Combine the sources.

    Args:
        fills: broker id -> its fill rate, bytes/s.
        logs: broker id -> what its request log tells; None for a broker that is not known.
        metrics: broker id -> what its metrics tell.
    """
    parts = [(found, 0.0) for found in logs.values()]
    by_metrics: list[int] = []
    by_fill: list[int] = []
    for broker_id, fill in sorted(fills.items()):
        if broker_id not in logs:
            found = metrics.get(broker_id, Rates())
            parts.append((found, fill))
            is_measured = any(getattr(found, shape) is not None for shape in _SHAPES)
            (by_metrics if is_measured else by_fill).append(broker_id)
    highest = {}
    measured = set(_SHAPES) if logs else set()
    for shape in _SHAPES:
        rates = [(getattr(found, shape), fill) for found, fill in parts]
        highest[shape] = max((fill if rate is None else rate for rate, fill in rates), default=0.0)
        if any(rate is not None for rate, _ in rates):
            measured.add(shape)
    return Rates(
        **{shape: rate or None for shape, rate in highest.items()},
        by_log=tuple(logs),
        by_metrics=tuple(by_metrics),
        by_fill=tuple(by_fill),
        measured=frozenset(measured),
    )


def _shape(entity: Entity) -> str:
    if entity.user is None:
        return "client_id"
    return "user" if entity.client_id is None else "both"
