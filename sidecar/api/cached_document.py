"""A document that is asked for all the time: written once per snapshot, but for two numbers.

Once for each window of fill rates, that is: brokers in an emergency ask for theirs.

Between its parts come, at each answer, for how many ms it may be used, and the seconds until
something happens that the snapshot foresees.

Example: ``{"factor":0.0,…,"valid_for_ms":`` ``298500`` ``,"generation":3,"seconds_to_limit":``
``12.500`` ``,"cluster_id":"A"}``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from starlette.responses import Response

from sidecar.api.answers import Wall, members
from sidecar.api.preferences import prefers_text
from sidecar.control.board import Snapshot

VALID_FOR: Final = "Throttle-Valid-For-Ms"

_MOST_WINDOWS: Final = 16
"""Windows; brokers that hold alike ask for the same one."""

_prefers_text = lru_cache(maxsize=64)(prefers_text)


@dataclass(frozen=True, slots=True)
class Rendered:
    """All of an answer that does not depend on the moment.

    Attributes:
        before: the members before valid_for_ms.
        between: those after it.
        seconds: the name of the number that counts down.
        ends_at: what it counts down to, steady seconds; None for null.
        after: the members after that.
    """

    before: bytes
    between: bytes
    seconds: bytes
    ends_at: float | None
    after: bytes

    @classmethod
    def of(
        cls,
        before: Mapping[str, object],
        between: Mapping[str, object],
        seconds: str,
        ends_at: float | None,
        after: Mapping[str, object],
    ) -> "Rendered":
        """From the members themselves."""
        return cls(members(before), members(between), seconds.encode(), ends_at, members(after))

    def remaining(self, now: float) -> str | None:
        """The number that counts down, with milliseconds, never below 0."""
        return None if self.ends_at is None else f"{max(0.0, self.ends_at - now):.3f}"

    def body(self, valid_for_ms: str, now: float) -> bytes:
        """The whole answer at a moment."""
        return b'{%b,"valid_for_ms":%b,%b,"%b":%b,%b}' % (
            self.before,
            valid_for_ms.encode(),
            self.between,
            self.seconds,
            (self.remaining(now) or "null").encode(),
            self.after,
        )


class CachedDocument:
    """Serves one document of whatever snapshot is published."""

    def __init__(
        self,
        write: Callable[[Snapshot, float, float], Rendered],
        wall: Wall,
        *,
        plain_text: Callable[[Snapshot], str] | None = None,
        countdown_header: str | None = None,
    ) -> None:
        """A page of which nothing is written yet.

        Args:
            write: snapshot, steady seconds, window of fill rates in s -> what is served of it.
            wall: steady seconds -> epoch seconds of the machine's clock.
            plain_text: what is served instead to who prefers text.
            countdown_header: the header that tells the number that counts down, in a 304 too.
        """
        self._write = write
        self._wall = wall
        self._plain_text = plain_text
        self._countdown_header = countdown_header
        self._of: tuple[Snapshot, float] | None = None
        self._rendered: dict[float, Rendered] = {}

    def headers(self, snapshot: Snapshot, now: float, window_s: float) -> dict[str, str]:
        """The headers of this document alone."""
        headers = {} if self._plain_text is None else {"Vary": "Accept"}
        if self._countdown_header is not None:
            remaining = self._render(snapshot, now, window_s).remaining(now)
            return headers if remaining is None else {**headers, self._countdown_header: remaining}
        return headers

    def answer(
        self,
        snapshot: Snapshot,
        now: float,
        window_s: float,
        accept: str,
        headers: dict[str, str],
    ) -> Response:
        """The document, in the form that is preferred."""
        if self._plain_text is not None and _prefers_text(accept):
            return Response(self._plain_text(snapshot), headers=headers, media_type="text/plain")
        body = self._render(snapshot, now, window_s).body(headers[VALID_FOR], now)
        return Response(body, headers=headers, media_type="application/json")

    def _render(self, snapshot: Snapshot, now: float, window_s: float) -> Rendered:
        offset_s = self._wall(0.0)
        of = self._of
        if (
            of is None
            or of[0] is not snapshot
            or of[1] != offset_s
            or len(self._rendered) > _MOST_WINDOWS
        ):
            self._rendered.clear()
            self._of = snapshot, offset_s
        rendered = self._rendered.get(window_s)
        if rendered is None:
            rendered = self._rendered[window_s] = self._write(snapshot, now, window_s)
        return rendered
