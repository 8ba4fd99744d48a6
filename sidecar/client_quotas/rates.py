"""The most that clients write to one broker, by what shares a quota.

Clients share a quota by user, by client-id, or by both (``sidecar.quotas.entities``). The first of
these sources that there is tells how much they write:

1. The request log of the broker beside this sidecar, if it has been read without a gap for a
   minute. Other brokers have logs of their own, so for them the second source counts besides.
2. The fill rates of brokers: no client writes more to a broker than the broker fills, unless
   segments are deleted meanwhile. With N equal clients that is N times too much.

The highest rate of the last 15 minutes counts (``sidecar.throttle.peak``).

Example: six clients write 3 MB/s each to the only broker. By the log a client-id writes 3 MB/s, so
the first quota is 6 MB/s. By the fill rate it may be 18 MB/s, so the first quota is 36 MB/s.
"""

from dataclasses import dataclass

from sidecar.quotas.entities import Entity


@dataclass(frozen=True, slots=True)
class Rates:
    """The most that clients which share a quota write to one broker, bytes/s; None if not known.

    Attributes:
        user: those of one user.
        client_id: those with one client-id.
        both: those of one user with one client-id.
        is_logged: whether this is by the request log.
    """

    user: float | None = None
    client_id: float | None = None
    both: float | None = None
    is_logged: bool = False

    def at_least(self, rate: float) -> "Rates":
        """Return the same rates, but none below another one."""
        user, client_id, both = (
            max(each or 0.0, rate) or None for each in (self.user, self.client_id, self.both)
        )
        return Rates(user, client_id, both, self.is_logged)

    def of(self, entity: Entity) -> float | None:
        """Return the rate that counts for a quota."""
        if entity.user is None:
            return self.client_id
        return self.user if entity.client_id is None else self.both
