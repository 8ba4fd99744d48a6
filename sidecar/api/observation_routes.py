"""This sidecar's observations and zone for other sidecars: GET /v1/observations and /v1/zone.

Example: a request with ``?origin=a1b2&after=7`` and ``Prefer: wait=10`` is answered when there is
an observation after the sixth, or with an empty list after 10 s.
"""

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import FastAPI, Query
from starlette.requests import Request
from starlette.responses import Response

from sidecar.api.answers import NO_STORE, answer
from sidecar.api.long_poll import wait_for_any
from sidecar.api.preferences import preferred_wait_s
from sidecar.api.problems import documented
from sidecar.control.board import Board
from sidecar.peers import zones
from sidecar.peers.observations import PATH, ObservationLog

_LONGEST_WAIT_S: Final = 30.0
_MOST_WAITING: Final = 1000


def add_observations(
    app: FastAPI, board: Board, log: ObservationLog, zone: Callable[[], str | None]
) -> None:
    """Add the routes for followers, and for those who look for observers.

    Args:
        app: gets the route.
        board: waits end when it is closed.
        log: the observations to send.
        zone: the zone of this sidecar.
    """
    waiting = 0

    @app.get(zones.PATH, summary="This sidecar's zone")
    async def own_zone() -> Response:
        """Null while no zone is known. The form is for sidecars of the same version."""
        return answer(zones.ZoneAnswer(zone()))

    @app.get(
        PATH,
        summary="This sidecar's observations, for its followers",
        responses=documented(422),
    )
    async def observations(
        request: Request,
        origin: Annotated[str, Query(max_length=100)] = "",
        after: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None,
    ) -> Response:
        """With origin and after (``next``) of the last answer, only newer observations.

        Prefer: wait=SECONDS waits for one. The form is for sidecars of the same version.
        """
        nonlocal waiting
        asked_at = board.now()
        place = after if origin == log.start_id else None
        wait_s = preferred_wait_s(request.headers.get("prefer", ""))
        if place is not None and wait_s is not None and waiting < _MOST_WAITING:
            waiting += 1
            try:
                ends = _over(board, min(wait_s, _LONGEST_WAIT_S))
                await wait_for_any(request, log.wait_for_more(place), ends)
            finally:
                waiting -= 1
        return Response(log.page(place, asked_at), headers=NO_STORE, media_type="application/json")


async def _over(board: Board, timeout_s: float) -> None:
    """Wait for a time, or until the reader leaves."""
    ends_at = board.now() + timeout_s
    while not board.closed and (left_s := ends_at - board.now()) > 0.0:
        await board.wait_for_change(board.snapshot.generation, left_s)
