"""The routes that read: the factor, volumes, brokers, decisions.

Example: ``GET /v1/volumes`` lists every volume of the snapshot that is published at that moment.
"""

from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from sidecar.api.answers import Wall, answer_listing, timestamp
from sidecar.api.documents import (
    BrokersDocument,
    DecisionsDocument,
    FactorDocument,
    FailureDocument,
    VolumesDocument,
)
from sidecar.api.factor import VALID_FOR, FactorReader
from sidecar.api.views import View, change_document
from sidecar.board import Board
from sidecar.throttle.limits import Limit


def add_reading(
    app: FastAPI, board: Board, reader: FactorReader, wall: Wall, limit: Limit | None
) -> None:
    """Adds the routes that read."""

    @app.get(
        "/v1/throttle-factor",
        summary="The throttle factor in force, and why",
        response_model=None,
        responses=_FACTOR_RESPONSES,
        openapi_extra={"parameters": _FACTOR_HEADERS},
    )
    async def throttle_factor(request: Request) -> Response:
        """Waits for the next change, or answers 304, or the bare number, if asked to.

        With `If-None-Match` answers 304 while nothing has changed; with `Prefer: wait=SECONDS`
        besides, waits for the next change. With `Accept: text/plain` answers the bare number.
        """
        return await reader.read(request)

    @app.get(
        "/v1/volumes",
        summary="Every volume, with its fill rate and the seconds to its limit",
        response_model=None,
        responses={200: {"model": VolumesDocument}},
    )
    async def volumes() -> Response:
        """Also log dirs that are offline, and what fenced or departed brokers left that counts."""
        snapshot = board.snapshot
        view = View(snapshot, board.now(), wall)
        return answer_listing({"generation": snapshot.generation}, "volumes", view.volumes())

    @app.get(
        "/v1/brokers",
        summary="Every broker: active or fenced, last seen, last failure",
        response_model=None,
        responses={200: {"model": BrokersDocument}},
    )
    async def brokers() -> Response:
        """The cluster's brokers by its last answer, and why the last poll failed if it did."""
        memory = board.snapshot.memory
        failure = memory.failure
        before: dict[str, object] = {
            "cluster_id": memory.membership.cluster_id if memory.membership else None,
            "listed_at": timestamp(wall, memory.membership_at),
            "failed_polls": memory.failed_polls,
            "last_failure": failure and FailureDocument(failure.kind.value, failure.message, None),
        }
        view = View(board.snapshot, board.now(), wall)
        return answer_listing(before, "brokers", view.brokers())

    @app.get(
        "/v1/decisions",
        summary="The last 1,000 changes of the decision",
        response_model=None,
        responses={200: {"model": DecisionsDocument}},
    )
    async def decisions() -> Response:
        """The newest first, since the sidecar started."""
        newest_first = list(reversed(board.changes))
        documents = (change_document(change, limit, wall) for change in newest_first)
        return answer_listing({}, "decisions", documents)


_FACTOR_HEADERS: Final[list[dict[str, object]]] = [
    {
        "name": "If-None-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The ETag of the answer that the reader has; 304 while it still holds.",
    },
    {
        "name": "Prefer",
        "in": "header",
        "schema": {"type": "string"},
        "description": "wait=SECONDS (RFC 7240): with a matching If-None-Match, wait for a change. "
        "At most 300 s, and half of what is left of the validity.",
    },
]

_FACTOR_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": FactorDocument,
        "content": {"text/plain": {"schema": {"type": "string"}}},
        "headers": {
            "ETag": {
                "schema": {"type": "string"},
                "description": "The start's id and the generation; never repeated.",
            },
            VALID_FOR: {
                "schema": {"type": "integer"},
                "description": "How long the answer may be used by who hears nothing more, in ms.",
            },
            "Preference-Applied": {
                "schema": {"type": "string"},
                "description": "wait=SECONDS, when the answer was waited for.",
            },
        },
    },
    304: {
        "description": "Nothing has changed; the validity is renewed.",
        "headers": {
            VALID_FOR: {
                "schema": {"type": "integer"},
                "description": "How long what the reader has may be used from now on, in ms.",
            }
        },
    },
}
