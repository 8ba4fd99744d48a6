"""Builds the apps: the whole API with its OpenAPI document, or the metrics alone.

Example: ``build_app(services, polling)`` is the whole API; ``build_metrics_app(board, ...)`` is for
an address that only Prometheus and probes may reach.
"""

import asyncio
from collections.abc import Callable, Sequence
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
from sidecar.api.answers import NO_STORE, answer
from sidecar.api.body_limit import BodyLimitMiddleware
from sidecar.api.change_routes import add_changing
from sidecar.api.changes import Changes
from sidecar.api.docs_page import CONTENT_SECURITY_POLICY, docs_page
from sidecar.api.documents import StatusDocument
from sidecar.api.exposition import AT_ONCE, scrape
from sidecar.api.list_routes import add_lists
from sidecar.api.long_poll_routes import add_long_polls
from sidecar.api.observation_routes import add_observations
from sidecar.api.problems import documented, problem
from sidecar.api.readiness import Polling, why_not_ready
from sidecar.control.board import Board
from sidecar.control.capability import Capability, Services
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.growth.capability import GrowthCapability
from sidecar.peers.observations import ObservationLog
from sidecar.status.inputs import StatusInputs, ToolSettings
from sidecar.status.routes import add_status


def build_app(
    services: Services,
    polling: Polling,
    *,
    capabilities: Sequence[Capability] = (),
    peers: Sequence[str] = (),
    observations: ObservationLog | None = None,
    zone: Callable[[], str | None] = lambda: None,
    refusal: Callable[[], str] = lambda: "",
    registry: CollectorRegistry | None = None,
    user_header: str | None = None,
    tools: ToolSettings | None = None,
) -> FastAPI:
    """The whole API.

    Args:
        services: the board, and everything that a change through the API needs.
        polling: the expected times of polling.
        capabilities: the capabilities that add routes, in the order of the documentation.
        peers: the addresses of other sidecars, as far as they are known.
        observations: the observations of this sidecar for its followers; None to publish none.
        zone: the zone of this sidecar, for other sidecars.
        refusal: why a broker accepts only the former credentials; "" if none does.
        registry: the metrics; None when they have an address of their own.
        user_header: the request header in which a proxy names the user, for changes.
        tools: how an operator's tools reach the cluster, for the status page.
    """
    app = _app("The throttle factor of a Kafka cluster, and why.")
    board, wall, failures = services.board, services.wall, services.failures
    add_long_polls(app, board, wall)
    add_lists(app, board, wall)
    if observations is not None:
        add_observations(app, board, observations, zone)
    changes = Changes(board, wall, services.persist, user_header)
    add_changing(app, changes, services.tokens)
    for each in capabilities:
        _add_guarded(app, each, failures)
    inputs = StatusInputs(
        board,
        polling.reaction_s,
        services.contents,
        capabilities,
        failures,
        tools or ToolSettings(),
        services.tokens,
        refusal,
        next((each.watch for each in capabilities if isinstance(each, GrowthCapability)), None),
    )
    add_status(app, inputs, changes, peers)
    _add_health(app, board, polling)
    if registry is not None:
        _add_metrics(app, registry)
    _add_documentation(app)
    return app


def build_metrics_app(board: Board, polling: Polling, registry: CollectorRegistry) -> FastAPI:
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
        summary="Whether the sidecar is alive",
        responses={200: {"model": StatusDocument}},
    )
    async def healthz() -> Response:
        """200 while the event loop runs."""
        return answer(StatusDocument("ok", __version__))

    @app.get(
        "/readyz",
        summary="Whether the factor comes from a valid observation",
        responses={200: {"model": StatusDocument}, **documented(503)},
    )
    async def readyz() -> Response:
        """200 with a valid observation while polling is not stuck, or when the sidecar is disabled.

        Otherwise 503 with the reason. Do not use it as the readiness probe of a broker's pod: a
        sidecar that can't read volumes would take its broker out of service.
        """
        reason = why_not()
        return problem(503, reason) if reason else answer(StatusDocument("ready", __version__))


def _add_metrics(app: FastAPI, registry: CollectorRegistry) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    @app.get(
        "/metrics",
        summary="The metrics, for Prometheus",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
            **documented(503),
        },
    )
    async def metrics(request: Request) -> Response:
        """Prometheus' text format, or OpenMetrics if accepted. A scrape costs no broker request."""
        return scrape(registry, request, limit)


def _add_documentation(app: FastAPI) -> None:

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return answer(app.openapi())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        headers = {**NO_STORE, "Content-Security-Policy": CONTENT_SECURITY_POLICY}
        return HTMLResponse(docs_page(app.openapi()), headers=headers)
