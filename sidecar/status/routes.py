"""The routes of the status page, whose code is loaded for the first request.

Most sidecars are read by machines alone. They save the memory of the page (2.5 MB) and the time to
load it (0.03 s).

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
from sidecar.status.inputs import StatusInputs

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
    ("/runbooks", "GET", lambda answers: answers.runbooks),
    ("/runbooks/", "GET", lambda answers: answers.runbooks),
    ("/runbooks/{name}", "GET", lambda answers: answers.runbook),
    ("/override", "GET", lambda answers: answers.form),
    ("/override", "POST", lambda answers: answers.set),
    ("/override/confirm", "POST", lambda answers: answers.ask),
    ("/override/end", "GET", lambda answers: answers.confirm_end),
    ("/override/end", "POST", lambda answers: answers.end),
)


def add_status(app: FastAPI, inputs: StatusInputs, changes: Changes, peers: Sequence[str]) -> None:
    """Adds the routes.

    Args:
        app: gets the routes.
        inputs: the inputs of the page.
        changes: publishes an operator's changes.
        peers: the addresses of other sidecars, as far as they are known.
    """

    @cache
    def answers() -> "Answers":
        from sidecar.status.responses import Answers  # noqa: PLC0415  see above

        return Answers(inputs, changes, peers)

    for path, method, chosen in _ROUTES:
        app.add_route(path, _route(answers, chosen), [method], include_in_schema=False)


def _route(answers: Callable[[], "Answers"], chosen: Callable[["Answers"], _Answer]) -> _Answer:
    async def answer(request: Request) -> Response:
        try:
            return await chosen(answers())(request)
        except HTTPException as error:
            return answers().refused(error)

    return answer
