"""GET /v1/throttle-factor: the factor, and waiting for its next change.

A reader that sends the ETag it has gets 304 while nothing has changed; with ``Prefer: wait=N``
besides, the answer waits for the next change or N seconds. Every answer, the 304 too, says for how
long it may be used. So a wait ends after half of that at the latest: a reader that only hears 304
is renewed before what it has runs out.

All that does not depend on the moment is written once per snapshot: this is what every broker asks
all the time.

Example: valid for another 240 s, ``Prefer: wait=300`` is answered after 120 s with 304 and
``Throttle-Valid-For-Ms: 298000``, since there were polls meanwhile.
"""

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from sidecar.api.answers import NO_STORE, Wall, members, timestamp
from sidecar.api.preferences import matches, preferred_wait_s, prefers_text
from sidecar.api.views import limit_reached_at, violations
from sidecar.board import Board, Snapshot
from sidecar.throttle.limits import Limit

VALID_FOR: Final = "Throttle-Valid-For-Ms"

LONGEST_WAIT_S: Final = 300.0
"""Proxies and NATs forget connections that are silent for longer."""

_SHORTEST_WAIT_S: Final = 0.1
"""Near the end of the validity half of the rest is nothing: readers would spin."""

_MOST_WAITING: Final = 1000
"""Each costs some kilobytes; a reader beyond them is answered at once."""

_prefers_text = lru_cache(maxsize=64)(prefers_text)


@dataclass(frozen=True, slots=True)
class _Written:
    """A snapshot's answer in three parts, between which come the two numbers of the moment.

    Attributes:
        snapshot: what it says.
        wall_offset_s: how the machine's clock was set against the steady one.
        limit_at: when the first volume reaches its limit, steady seconds.
        head: up to the value of valid_for_ms.
        middle: from there to the value of seconds_to_limit.
        tail: the rest.
    """

    snapshot: Snapshot
    wall_offset_s: float
    limit_at: float | None
    head: bytes
    middle: bytes
    tail: bytes

    def body(self, valid_for_ms: str, now: float) -> bytes:
        """The whole answer at a moment."""
        left = "null" if self.limit_at is None else f"{max(0.0, self.limit_at - now):.3f}"
        parts = (self.head, valid_for_ms.encode(), self.middle, left.encode(), self.tail)
        return b"".join(parts)


class FactorReader:
    """Answers readers of the throttle factor.

    Attributes:
        waiting: how many readers wait for a change now.
    """

    def __init__(self, board: Board, wall: Wall, validity_s: float, limit: Limit | None) -> None:
        self.waiting = 0
        self._board = board
        self._wall = wall
        self._validity_s = validity_s
        self._limit = limit
        self._written: _Written | None = None

    async def read(self, request: Request) -> Response:
        """The answer to one request."""
        asked = _asked(request)
        known = asked.get("if-none-match")
        if known is None or not matches(known, self._board.etag):
            return self._answer(asked.get("accept", "*/*"))
        generation, headers = self._board.snapshot.generation, {}
        preferred_s = preferred_wait_s(asked.get("prefer", ""))
        if preferred_s is not None and self.waiting < _MOST_WAITING:
            wait_s = min(preferred_s, self._longest_wait_s())
            headers["Preference-Applied"] = f"wait={int(wait_s)}"
            await self._wait(request, generation, wait_s)
        if generation == self._board.snapshot.generation:
            now = self._board.now()
            return Response(status_code=304, headers={**self._headers(now), **headers})
        return self._answer(asked.get("accept", "*/*"), headers)

    def _answer(self, accept: str, further: dict[str, str] | None = None) -> Response:
        snapshot, now = self._board.snapshot, self._board.now()
        headers = {**self._headers(now), **(further or {})}
        if _prefers_text(accept):
            factor = repr(snapshot.decision.factor)
            return Response(factor, headers=headers, media_type="text/plain")
        body = self._write(snapshot).body(headers[VALID_FOR], now)
        return Response(body, headers=headers, media_type="application/json")

    def _headers(self, now: float) -> dict[str, str]:
        return {
            **NO_STORE,
            "ETag": f'"{self._board.etag}"',
            VALID_FOR: str(int(self._valid_for_s(now) * 1000)),
            "Vary": "Accept",
        }

    def _valid_for_s(self, now: float) -> float:
        until = self._board.snapshot.decision.valid_until
        if until is None:
            return self._validity_s
        return min(self._validity_s, max(0.0, until - now))

    def _longest_wait_s(self) -> float:
        valid_for_s = self._valid_for_s(self._board.now())
        half_s = max(valid_for_s / 2, min(valid_for_s, _SHORTEST_WAIT_S))
        return min(half_s, LONGEST_WAIT_S)

    async def _wait(self, request: Request, generation: int, wait_s: float) -> None:
        """Waits for the next change, the time, the board's end, or that the reader goes away."""
        change = asyncio.create_task(self._board.wait_for_change(generation, wait_s))
        gone = asyncio.create_task(_gone(request))
        self.waiting += 1
        try:
            await asyncio.wait((change, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.waiting -= 1
            for task in (change, gone):
                task.cancel()
            await asyncio.gather(change, gone, return_exceptions=True)

    def _write(self, snapshot: Snapshot) -> _Written:
        offset_s = self._wall(0.0)
        written = self._written
        if written is None or written.snapshot is not snapshot or written.wall_offset_s != offset_s:
            written = self._written = self._written_anew(snapshot, offset_s)
        return written

    def _written_anew(self, snapshot: Snapshot, offset_s: float) -> _Written:
        decision, memory, wall = snapshot.decision, snapshot.memory, self._wall
        head = {
            "factor": decision.factor,
            "source": decision.source.value,
            "reason": decision.reason,
            "violations": list(violations(decision.violations, self._limit)),
            "computed_at": timestamp(wall, decision.computed_at),
            "valid_until": timestamp(wall, decision.valid_until),
        }
        middle = {"since": timestamp(wall, snapshot.since), "generation": snapshot.generation}
        tail = {"cluster_id": memory.membership.cluster_id if memory.membership else None}
        return _Written(
            snapshot,
            offset_s,
            limit_reached_at(snapshot),
            b'{%b,"valid_for_ms":' % members(head),
            b',%b,"seconds_to_limit":' % members(middle),
            b",%b}" % members(tail),
        )


def _asked(request: Request) -> dict[str, str]:
    """The headers that matter here; the values of a repeated one as one list."""
    asked: dict[str, str] = {}
    for raw_name, raw_value in request.scope["headers"]:
        if raw_name in _ASKED:
            name, value = raw_name.decode(), raw_value.decode("latin-1")
            asked[name] = f"{asked[name]},{value}" if name in asked else value
    return asked


_ASKED: Final = frozenset((b"accept", b"if-none-match", b"prefer"))


async def _gone(request: Request) -> None:
    """Returns when the reader has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
