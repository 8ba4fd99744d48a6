"""Every error of the API: ``application/problem+json`` (RFC 9457).

An answer never repeats any part of the request, such as a token, a body or a path.

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
"""The answer for an unknown path."""

_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "title": "Problem",
    "description": "An error (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "about:blank, since the status is the type."},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string", "description": "The error and the remedy, in a sentence."},
        "errors": {
            "type": "array",
            "description": "The problem of each refused field.",
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
    """Answer with an error; ``errors`` has pairs of a refused field and its problem."""
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
    """Describe errors for the OpenAPI document."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": _SCHEMA}},
        }
        for status in statuses
    }


async def refused(request: Request, error: Exception) -> Response:
    """Answer to an HTTPException, also of the router."""
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
    """Answer to invalid input with the name of each wrong field, but never its value."""
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
    """Answer to a client that left in the middle of the body; nobody reads this answer."""
    return problem(400, "The body ended early.")


async def failed(_request: Request, _error: Exception) -> Response:
    """Answer to a bug of the sidecar; the log has the traceback."""
    return problem(500, "The sidecar failed; its log has the details. Please report this.")


def _allowed(request: Request) -> str:
    # The router names only the methods of the first route with this path.
    methods = {
        method
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return ", ".join(sorted(methods))
