"""The routes that list volumes, brokers, decisions and readers.

Example: ``GET /v1/volumes`` lists every volume of the snapshot that is published at that moment.
"""

from fastapi import FastAPI
from starlette.responses import Response

from sidecar.api.answers import Wall, answer_listing, timestamp
from sidecar.api.documents import (
    BrokersDocument,
    DecisionsDocument,
    FailureDocument,
    ReadersDocument,
    VolumesDocument,
)
from sidecar.api.views import View, change_document, reader_document
from sidecar.control.board import Board


def add_lists(app: FastAPI, board: Board, wall: Wall) -> None:
    """Add the routes."""

    @app.get(
        "/v1/volumes",
        summary="Every volume, with its fill rate and the seconds to its limit",
        responses={200: {"model": VolumesDocument}},
    )
    async def volumes() -> Response:
        """With offline log dirs, and volumes of fenced or departed brokers that still count."""
        snapshot = board.snapshot
        view = View(snapshot, board.now(), wall)
        return answer_listing({"generation": snapshot.generation}, "volumes", view.volumes())

    @app.get(
        "/v1/brokers",
        summary="Every broker: active or fenced, last seen, last failure",
        responses={200: {"model": BrokersDocument}},
    )
    async def brokers() -> Response:
        """The brokers that the cluster last listed, and why the last poll failed, if it did."""
        memory = board.snapshot.memory
        failure = memory.failure
        before: dict[str, object] = {
            "cluster_id": memory.cluster_id,
            "listed_at": timestamp(wall, memory.membership_at),
            "failed_polls": memory.failed_polls,
            "last_failure": failure and FailureDocument(failure.kind.value, failure.message, None),
        }
        view = View(board.snapshot, board.now(), wall)
        return answer_listing(before, "brokers", view.brokers())

    @app.get(
        "/v1/decisions",
        summary="The last 1,000 changes of the decision",
        responses={200: {"model": DecisionsDocument}},
    )
    async def decisions() -> Response:
        """The newest first, since the sidecar started."""
        newest_first = list(reversed(board.changes))
        documents = (change_document(change, board.rules, wall) for change in newest_first)
        return answer_listing({}, "decisions", documents)

    @app.get(
        "/v1/readers",
        summary="The brokers whose quota callbacks read the factors here",
        responses={200: {"model": ReadersDocument}},
    )
    async def readers() -> Response:
        """The generation they have, whether they wait, and how many clients they throttle."""
        documents = (reader_document(each, wall) for each in board.readers.recent(board.now()))
        return answer_listing({"generation": board.snapshot.generation}, "readers", documents)
