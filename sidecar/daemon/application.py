"""The routes: which path is answered by what, and how the OpenAPI document describes it.

Example: ``build_app(board, ...)`` for the whole API; ``build_metrics_app(board, ...)`` for an
address that only Prometheus and probes may reach.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sidecar import __version__
from sidecar.api import problems
from sidecar.api.answers import NO_STORE, Wall, answer
from sidecar.api.body_limit import BodyLimitMiddleware
from sidecar.api.change_routes import add_changing
from sidecar.api.changes import (
    Changes,
)
from sidecar.api.docs_page import CONTENT_SECURITY_POLICY, docs_page
from sidecar.api.documents import (
    StatusDocument,
)
from sidecar.api.exposition import scrape
from sidecar.api.list_routes import add_reading
from sidecar.api.long_poll_routes import add_following
from sidecar.api.observation_routes import add_observations
from sidecar.api.problems import documented, problem
from sidecar.api.readiness import Polling, why_not_ready
from sidecar.control.board import Board
from sidecar.control.capability import Capability
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.peers.observations import ObservationLog
from sidecar.status import add_status
from sidecar.status.contents import VolumeContents
from sidecar.throttle.limits import Limit


def build_app(
    board: Board,
    *,
    wall: Wall,
    validity_s: float,
    limit: Limit | None,
    stop_line: Limit | None,
    soft_limit: Limit | None,
    reaction_s: float,
    polling: Polling,
    registry: CollectorRegistry | None,
    token: Callable[[], str | None],
    persist: Callable[[], Awaitable[bool]],
    capabilities: Sequence[Capability],
    failures: CapabilityFailures,
    contents: VolumeContents | None,
    peers: Sequence[str],
    seen: ObservationLog | None = None,
) -> FastAPI:
    """The whole API.

    Args:
        board: what is read and changed.
        wall: steady seconds -> epoch seconds of the machine's clock.
        validity_s: for how long an answer may be used that has no end of its own, seconds.
        limit: what volumes are compared with; None when disabled.
        stop_line: from where on nothing is admitted; None: nowhere.
        soft_limit: from where on producers are slowed down; None: nowhere.
        reaction_s: how long a throttle may take, seconds.
        polling: what polling is to be like.
        registry: the metrics; None when they are served elsewhere.
        token: the bearer token for changes, read at each request; None refuses them.
        persist: writes the state now; returns whether it is on disk.
        capabilities: what adds routes of its own, in the order of the documentation.
        failures: what of them failed, a request to one of their routes too.
        contents: what lies on volumes; None when no broker is queried.
        peers: the addresses of other sidecars, as far as they are known.
        seen: what this sidecar has seen, for its followers; None: it has none.
    """
    app = _app("The throttle factor of a Kafka cluster, and why.")
    add_following(app, board, wall, validity_s, limit=limit, stop_line=stop_line)
    add_reading(app, board, wall, limit, stop_line)
    if seen is not None:
        add_observations(app, board, seen)
    changes = Changes(board, wall, persist)
    add_changing(app, changes, token)
    for each in capabilities:
        _add_guarded(app, each, failures)
    add_status(
        app,
        board,
        limit=limit,
        stop_line=stop_line,
        soft_limit=soft_limit,
        reaction_s=reaction_s,
        validity_s=validity_s,
        contents=contents,
        changes=changes,
        token=token,
        peers=peers,
        capabilities=capabilities,
        failures=failures,
    )
    _add_health(app, board, polling)
    if registry is not None:
        _add_metrics(app, registry)
    _add_documentation(app)
    return app


def build_metrics_app(
    board: Board,
    *,
    registry: CollectorRegistry,
    polling: Polling,
) -> FastAPI:
    """/metrics, /healthz and /readyz alone."""
    app = _app("The metrics and the health of a throttle sidecar.")
    _add_health(app, board, polling)
    _add_metrics(app, registry)
    return app


def _app(description: str) -> FastAPI:
    app = FastAPI(
        title="throttle-sidecar",
        version=__version__,
        description=description,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        exception_handlers={
            HTTPException: problems.refused,
            RequestValidationError: problems.invalid,
            ClientDisconnect: problems.gone,
            Exception: problems.failed,
        },
    )
    app.add_middleware(BodyLimitMiddleware)
    return app


def _add_guarded(app: FastAPI, capability: Capability, failures: CapabilityFailures) -> None:
    before = len(app.routes)
    failures.call(capability.name, "routes", partial(capability.add_routes, app), None)
    for route in app.routes[before:]:
        if isinstance(route, Route):
            route.app = _guarded(route.app, capability.name, f"route {route.path}", failures)


def _guarded(app: ASGIApp, capability: str, what: str, failures: CapabilityFailures) -> ASGIApp:
    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except Exception as error:
            failures.failed(capability, what, error)
            raise
        failures.works(capability, what)

    return guarded


def _add_health(app: FastAPI, board: Board, polling: Polling) -> None:
    why_not = why_not_ready(board, polling)

    @app.get(
        "/healthz",
        summary="Whether the sidecar lives",
        response_model=None,
        responses={200: {"model": StatusDocument}},
    )
    async def healthz() -> Response:
        """200 as long as its loop turns."""
        return answer(StatusDocument("ok"))

    @app.get(
        "/readyz",
        summary="Whether the factor comes from seeing the cluster",
        response_model=None,
        responses={200: {"model": StatusDocument}, **documented(503)},
    )
    async def readyz() -> Response:
        """200 with a decision from a valid observation and polling not stuck, or when disabled.

        Else 503 with the reason. Not for the readiness probe of a broker's pod: a sidecar that
        can't see would take its broker out of service.
        """
        reason = why_not()
        return problem(503, reason) if reason else answer(StatusDocument("ready"))


def _add_metrics(app: FastAPI, registry: CollectorRegistry) -> None:

    @app.get(
        "/metrics",
        summary="The metrics, for Prometheus",
        response_model=None,
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics(request: Request) -> Response:
        """Prometheus' text format, or OpenMetrics for who accepts it; costs no broker request."""
        return scrape(registry, request)


def _add_documentation(app: FastAPI) -> None:

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return answer(app.openapi())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        headers = {**NO_STORE, "Content-Security-Policy": CONTENT_SECURITY_POLICY}
        return HTMLResponse(docs_page(app.openapi()), headers=headers)
