"""The routes of the status page, whose code is loaded for the first request.

Most sidecars are read by machines alone: these save its memory and its time to start.
Measured: 2.5 MB and 0.03 s.

Example: ``GET /`` is the page; an open one requests ``GET /status/parts`` for what has changed.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sidecar.api.changes import Changes
from sidecar.control.board import Board
from sidecar.control.capability import Capability
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.status.contents import VolumeContents
from sidecar.throttle.limits import Limit

if TYPE_CHECKING:
    from sidecar.status.responses import Answers

_Answer = Callable[[Request], Awaitable[Response]]

_ROUTES: Final[tuple[tuple[str, str, Callable[["Answers"], _Answer]], ...]] = (
    ("/", "GET", lambda answers: answers.status),
    ("/status/parts", "GET", lambda answers: answers.parts),
    ("/status/page.css", "GET", lambda answers: answers.file),
    ("/status/page.js", "GET", lambda answers: answers.file),
    ("/status/icon.svg", "GET", lambda answers: answers.file),
    ("/volumes", "GET", lambda answers: answers.volumes),
    ("/override", "GET", lambda answers: answers.form),
    ("/override", "POST", lambda answers: answers.set),
    ("/override/confirm", "POST", lambda answers: answers.ask),
    ("/override/end", "GET", lambda answers: answers.confirm_end),
    ("/override/end", "POST", lambda answers: answers.end),
)


def add_status(
    app: FastAPI,
    board: Board,
    *,
    limit: Limit | None,
    stop_line: Limit | None,
    soft_limit: Limit | None,
    reaction_s: float,
    validity_s: float,
    contents: VolumeContents | None,
    changes: Changes,
    token: Callable[[], str | None],
    peers: Sequence[str],
    capabilities: Sequence[Capability],
    failures: CapabilityFailures,
) -> None:
    """Adds the routes.

    Args:
        app: gets them.
        board: what is shown.
        limit: what volumes are compared with; None when disabled.
        stop_line: from where on nothing is admitted; None: nowhere.
        soft_limit: from where on producers are slowed down; None: nowhere.
        reaction_s: how long a throttle may take, seconds.
        validity_s: for how long a decision may be used that has no end of its own, seconds.
        contents: what lies on volumes; None when no broker is read.
        changes: what changes go through.
        token: read at each request; None refuses every change.
        peers: the addresses of other sidecars, as far as they are known.
        capabilities: whose blocks are shown.
        failures: which of them fail; gets each failure of a block.
    """

    @cache
    def answers() -> "Answers":
        from sidecar.status.responses import Answers  # noqa: PLC0415  see above
        from sidecar.status.view import StatusInputs  # noqa: PLC0415  see above

        inputs = StatusInputs(
            board,
            limit,
            stop_line,
            soft_limit,
            reaction_s,
            validity_s,
            contents,
            capabilities,
            failures,
        )
        return Answers(inputs, changes, token, peers)

    for path, method, chosen in _ROUTES:
        app.add_route(path, _route(answers, chosen), [method], include_in_schema=False)


def _route(answers: Callable[[], "Answers"], chosen: Callable[["Answers"], _Answer]) -> _Answer:
    async def answer(request: Request) -> Response:
        try:
            return await chosen(answers())(request)
        except HTTPException as error:
            return answers().refused(error)

    return answer
