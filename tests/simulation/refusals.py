"""Which produce requests a broker refuses before the append, as its authorizer: the jar's rules.

While its user's factor is 0, a connection that produced before is never refused. A newer one is,
once its share of the leak budget is used up, and from then on until the release; ``shares`` has the
buckets. At the stop line all are. After the release a connection that was refused is admitted when
a request comes after a break, which has to be 0.5 s for 4 s and 50 ms after 8 s, or 20 s
after its first try.

Left out: the mute after the release of clients that make no break, since those here wait for each
answer; that time in which a broker stands still is no break; ``refuse.enabled``, excluded topics,
and requests that ACLs deny. The jar keeps more than ``MOST_KNOWN`` connections apart, 32,768: these
are more than clients here open in minutes.

Source: Refusals, Connections and Recent in deploy/quota-callback.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

LONGEST_BREAK_MS: Final = 500
SHORTEST_BREAK_MS: Final = 50
LONGEST_MS: Final = 4000
SHRINKS_MS: Final = 8000
MOST_BREAK_MS: Final = 20_000
FORGET_MS: Final = 2 * MOST_BREAK_MS
MOST_KNOWN: Final = 4096

Connection = tuple[int, int]
"""A client's number, and that of its connection."""


class Refusal(StrEnum):
    """Why a request is refused."""

    NEW_CONNECTION = "new connection"
    STOP_LINE = "stop line"
    RELEASE = "release"

    @property
    def mutes_s(self) -> float:
        """How long the request quota mutes the connection, seconds: quota.window.size.seconds."""
        return 0.0 if self is Refusal.RELEASE else 1.0


class _Verdict:
    """A connection that was refused."""

    __slots__ = ("_last_nanos", "_released_nanos")

    def __init__(self) -> None:
        self._last_nanos = 0
        self._released_nanos: int | None = None

    def ends(self, nanos: int) -> bool:
        """Whether a request after the release is admitted."""
        if self._released_nanos is None:
            self._released_nanos = nanos
            return False
        since_ms = (nanos - self._released_nanos) // 1_000_000
        shrinks_ms = max(0, since_ms - LONGEST_MS)
        shrunk_ms = (LONGEST_BREAK_MS - SHORTEST_BREAK_MS) * shrinks_ms // (SHRINKS_MS - LONGEST_MS)
        break_ms = max(SHORTEST_BREAK_MS, LONGEST_BREAK_MS - shrunk_ms)
        return nanos - self._last_nanos >= break_ms * 1_000_000 or since_ms >= MOST_BREAK_MS

    def refused(self, refusal: Refusal, nanos: int) -> None:
        self._last_nanos = nanos
        if refusal is not Refusal.RELEASE:
            self._released_nanos = None


class Refusals:
    """A broker's; no connection has produced at first."""

    def __init__(self) -> None:
        self._known: dict[Connection, None] = {}
        self._verdicts: dict[Connection, _Verdict] = {}
        self._stopped_nanos = 0

    def check(
        self,
        connection: Connection,
        now_nanos: int,
        *,
        stops_anybody: bool,
        stops: bool,
        admits_nobody: bool,
        admits: Callable[[], bool],
    ) -> Refusal | None:
        """Refuses a produce request, or not.

        Args:
            connection: that it comes by.
            now_nanos: the monotonic clock.
            stops_anybody: whether anybody's factor is 0.
            stops: whether that of its user is.
            admits_nobody: whether a volume is at the stop line.
            admits: whether its share of the leak budget lets it pass; it is reserved then.
        """
        self._forget(now_nanos, stops_anybody=stops_anybody)
        verdict = self._verdicts.get(connection)
        if stops and admits_nobody:
            return self._refuse(connection, Refusal.STOP_LINE, now_nanos)
        if stops and connection not in self._known:
            if verdict is not None or not admits():
                return self._refuse(connection, Refusal.NEW_CONNECTION, now_nanos)
            return None
        if verdict is not None:
            if not verdict.ends(now_nanos):
                return self._refuse(connection, Refusal.RELEASE, now_nanos)
            del self._verdicts[connection]
        self._note(connection)
        return None

    def _refuse(self, connection: Connection, refusal: Refusal, now_nanos: int) -> Refusal:
        self._verdicts.setdefault(connection, _Verdict()).refused(refusal, now_nanos)
        return refusal

    def _note(self, connection: Connection) -> None:
        """The last ones are the last to be forgotten."""
        self._known.pop(connection, None)
        self._known[connection] = None
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _forget(self, now_nanos: int, *, stops_anybody: bool) -> None:
        """Some time after the release nobody's verdict counts any more."""
        if stops_anybody:
            self._stopped_nanos = now_nanos
        elif self._verdicts and now_nanos - self._stopped_nanos >= FORGET_MS * 1_000_000:
            self._verdicts.clear()
