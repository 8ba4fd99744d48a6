"""Every error of the API: ``application/problem+json`` (RFC 9457).

An answer never repeats what was sent: not a token, not a body, not a path.

Example: ``{"type": "about:blank", "title": "Not Found", "status": 404, "detail": "..."}``.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from sidecar.api.answers import NO_STORE, encode

MEDIA_TYPE: Final = "application/problem+json"

NOTHING_HERE: Final = "There is no such path: /docs lists all paths."
"""To a path that is not known."""

_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "title": "Problem",
    "description": "What is wrong (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "about:blank: the status is the type."},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string", "description": "What is wrong and what to do, in a sentence."},
        "errors": {
            "type": "array",
            "description": "What is wrong with each field, when the input was refused.",
            "items": {
                "type": "object",
                "required": ["field", "problem"],
                "properties": {"field": {"type": "string"}, "problem": {"type": "string"}},
            },
        },
    },
}


def problem(
    status: int,
    detail: str,
    *,
    errors: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error as an answer; ``errors`` has pairs of a refused field and its problem."""
    document: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if errors:
        document["errors"] = errors
    return Response(
        encode(document),
        status,
        headers={**NO_STORE, **(headers or {})},
        media_type=MEDIA_TYPE,
    )


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The description of these errors in the OpenAPI document."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": _SCHEMA}},
        }
        for status in statuses
    }


async def refused(request: Request, error: Exception) -> Response:
    """The answer to an HTTPException, the router's own included."""
    if not isinstance(error, HTTPException):
        raise error
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    detail = {
        404: NOTHING_HERE,
        405: "This path does not have this method: /docs lists its methods.",
    }.get(error.status_code)
    if detail is None or error.detail != HTTPStatus(error.status_code).phrase:
        detail = error.detail
    return problem(error.status_code, detail, headers=headers)


async def invalid(_request: Request, error: Exception) -> Response:
    """The answer to invalid input: the name of each wrong field, but never its value."""
    if not isinstance(error, RequestValidationError):
        raise error
    errors = {
        (".".join(map(str, text["loc"])), text["msg"].removeprefix("Value error, "))
        for text in error.errors()
    }
    return problem(
        422,
        "The input is not valid, and nothing was changed: see errors.",
        errors=[{"field": field, "problem": message} for field, message in sorted(errors)],
    )


async def gone(_request: Request, _error: Exception) -> Response:
    """The end of a request whose client went away in the middle of the body; nobody reads it."""
    return problem(400, "The body ended early.")


async def failed(_request: Request, _error: Exception) -> Response:
    """The answer to a bug of the sidecar; the log has the traceback."""
    return problem(500, "The sidecar failed; its log has the details. Please report this.")


def _allowed(request: Request) -> str:
    # The router itself names only the methods of the first route with this path.
    methods = {
        method
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return ", ".join(sorted(methods))
