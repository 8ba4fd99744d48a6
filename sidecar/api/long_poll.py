"""Answers readers of the decision, at once or at its next change.

A reader that sends the ETag of its last answer gets 304 while nothing has changed. With ``Prefer:
wait=N`` in addition, the answer comes at the next change, or after N seconds. Every answer, also a
304, states how long it may be used. A wait takes half of that time at most, so a reader gets a 304
before its last answer expires.

Example: valid for another 240 s, ``Prefer: wait=300`` is answered after 120 s with 304 and
``Throttle-Valid-For-Ms: 298000``, since there were polls meanwhile.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from sidecar.api.answers import NO_STORE
from sidecar.api.long_poll_documents import OBSERVED_AGO, VALID_FOR, LongPollDocument
from sidecar.api.preferences import matches, preferred_wait_s
from sidecar.api.problems import problem
from sidecar.api.reader_reports import parse_broker, parse_report
from sidecar.api.views import observed_at
from sidecar.control.board import Board
from sidecar.throttle.readers import Reader, Report

_log: Final = logging.getLogger(__name__)

LONGEST_WAIT_S: Final = 300.0
"""Proxies and NATs forget connections that are silent for longer."""

_SHORTEST_WAIT_S: Final = 0.1
"""The shortest wait. Near the end of the validity, half of the rest would make readers spin."""

_MOST_WAITING: Final = 1000
"""The most waiting readers; each costs some kilobytes. A further reader is answered at once."""


_WARN_AGAIN_S: Final = 60.0
"""The shortest time between two warnings about a broker."""


class LongPoll:
    """Answers readers of every followed document.

    Attributes:
        waiting: the number of readers that wait for a change now.
    """

    def __init__(self, board: Board) -> None:
        self.waiting = 0
        self._board = board
        self._warned_at: dict[int, float] = {}
        self._observed = board.snapshot, observed_at(board.snapshot)

    async def read(self, request: Request, document: LongPollDocument) -> Response:
        """Answer one request for a document."""
        sent = _headers(request)
        generation, further = self._board.snapshot.generation, {}
        has_it = matches(sent.get("if-none-match", ""), self._board.etag)
        report = parse_report(sent)
        reader, broker_id = None, parse_broker(sent.get("throttle-broker", ""))
        if report is not None:
            broker_id = report.broker_id
            seen = generation if has_it else None
            self._warn_of_missing_authorizer(report)
            reader = self._board.readers.record(report, seen, self._board.now())
        if has_it:
            preferred_s = preferred_wait_s(sent.get("prefer", ""))
            if preferred_s is not None and self.waiting < _MOST_WAITING:
                wait_s = min(preferred_s, self._longest_wait_s())
                further["Preference-Applied"] = f"wait={int(wait_s)}"
                await self._wait(request, generation, wait_s, reader)
        if self._board.withheld:
            return problem(503, f"An answer might end a throttle: {self._board.unread}.")
        snapshot, now = self._board.snapshot, self._board.now()
        headers = {
            **NO_STORE,
            # A weak tag: JSON and text share it, and values without a new generation may move.
            "ETag": f'W/"{self._board.etag}"',
            VALID_FOR: str(int(self._valid_for_s(now) * 1000)),
            **self._age(now),
            **document.headers(snapshot, now, broker_id),
            **further,
        }
        if has_it and generation == snapshot.generation:
            return Response(status_code=304, headers=headers)
        return document.answer(snapshot, now, sent.get("accept", "*/*"), headers)

    def _warn_of_missing_authorizer(self, report: Report) -> None:
        """Log once for a broker that it can't throttle by volume, as the settings request.

        Anybody can send reports. So they count only for brokers of the cluster, and a report with
        an authorizer allows another line only after a minute.
        """
        snapshot, now = self._board.snapshot, self._board.now()
        warned_at = self._warned_at.get(report.broker_id)
        if report.refusals is not None:
            if warned_at is not None and now >= warned_at + _WARN_AGAIN_S:
                del self._warned_at[report.broker_id]
        elif (
            snapshot.decision.is_of_volumes
            and warned_at is None
            and report.broker_id in snapshot.memory.active
        ):
            self._warned_at[report.broker_id] = now
            _log.warning(
                "broker %d has no authorizer, so SIDECAR_THROTTLE_SCOPE=volume is refused there:"
                " for a full volume it throttles all clients. Set"
                " authorizer.class.name=throttlesidecar.SidecarAuthorizer on it",
                report.broker_id,
            )

    def _age(self, now: float) -> dict[str, str]:
        """The age of the oldest reading behind the decision."""
        snapshot = self._board.snapshot
        if self._observed[0] is not snapshot:
            self._observed = snapshot, observed_at(snapshot)
        at = self._observed[1]
        return {} if at is None else {OBSERVED_AGO: str(int(max(0.0, now - at) * 1000))}

    def _valid_for_s(self, now: float) -> float:
        until, validity_s = self._board.snapshot.decision.valid_until, self._board.rules.validity_s
        return validity_s if until is None else min(validity_s, max(0.0, until - now))

    def _longest_wait_s(self) -> float:
        valid_for_s = self._valid_for_s(self._board.now())
        half_s = max(valid_for_s / 2, min(valid_for_s, _SHORTEST_WAIT_S))
        return min(half_s, LONGEST_WAIT_S)

    async def _wait(
        self, request: Request, generation: int, wait_s: float, reader: Reader | None
    ) -> None:
        """Wait for a change, the end of the time or of the board, or until the reader leaves."""
        self._count(reader, 1)
        try:
            await wait_for_any(request, self._board.wait_for_change(generation, wait_s))
        finally:
            self._count(reader, -1)

    def _count(self, reader: Reader | None, more: int) -> None:
        self.waiting += more
        if reader is not None:
            reader.waiting += more


async def wait_for_any(request: Request, *events: Coroutine[Any, Any, object]) -> None:
    """Wait for the first of several events, or until the reader of a request leaves."""
    tasks = [asyncio.create_task(each) for each in (*events, _client_left(request))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _headers(request: Request) -> dict[str, str]:
    """The headers for long polls; the values of a repeated header are one list."""
    found: dict[str, str] = {}
    for raw_name, raw_value in request.scope["headers"]:
        if raw_name in _NAMES:
            name, value = raw_name.decode(), raw_value.decode("latin-1")
            found[name] = f"{found[name]},{value}" if name in found else value
    return found


_NAMES: Final = frozenset(
    (
        *(b"accept", b"if-none-match", b"prefer"),
        *(b"throttle-reader", b"throttle-refused", b"throttle-scope", b"throttle-broker"),
        *(b"throttle-kafka", b"throttle-jar", b"throttle-reserve"),
    )
)


async def _client_left(request: Request) -> None:
    """Return when the reader has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
