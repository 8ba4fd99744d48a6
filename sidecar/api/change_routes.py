"""The routes for changes (the override, and forgetting a broker or log dir), and the token check.

Example: without a token ``PUT /v1/override`` answers 401, and 403 when none is configured.
"""

from typing import Annotated, Any, Final

from fastapi import Depends, FastAPI, Path, Query, params
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import AfterValidator, BeforeValidator, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sidecar.api.answers import answer
from sidecar.api.changes import Changes, OverrideRequest, documented_body, json_body, line
from sidecar.api.documents import BrokerForgotten, OverrideCleared, OverrideSet, OverrideShown
from sidecar.api.problems import documented
from sidecar.control.tokens import Tokens

_NODE_ID_MAX: Final = 2**31 - 1
"""Kafka's node ids are int32."""


def add_changing(app: FastAPI, changes: Changes, tokens: Tokens) -> None:
    """Add the routes for changes, and the route that shows the override.

    Args:
        app: gets the routes.
        changes: makes the changes.
        tokens: the bearer tokens.
    """
    guarded: dict[str, Any] = {"dependencies": [needs_token(tokens)]}

    @app.get(
        "/v1/override",
        summary="The current override",
        responses={200: {"model": OverrideShown}},
    )
    async def show_override() -> Response:
        """Null without an override."""
        return answer(OverrideShown(changes.shown()))

    @app.put(
        "/v1/override",
        summary="Set an override, for a time",
        responses={200: {"model": OverrideSet}, **documented(401, 403, 409, 413, 415, 422)},
        openapi_extra=documented_body(OverrideRequest.model_json_schema()),
        **guarded,
    )
    async def set_override(request: Request) -> Response:
        """Replaces the current override. 409 when the sidecar is disabled."""
        return answer(
            await changes.set_override(await json_body(request, OverrideRequest), request)
        )

    @app.delete(
        "/v1/override",
        summary="End the override",
        responses={200: {"model": OverrideCleared}, **documented(401, 403)},
        **guarded,
    )
    async def clear_override(request: Request) -> Response:
        """The computed factor or the fallback applies at once. Without an override, also 200.

        An override in a state file that is not read yet ends too.
        """
        return answer(await changes.clear_override(request))

    @app.delete(
        "/v1/brokers/{broker_id}",
        summary="Forget a dead broker's last reading",
        responses={200: {"model": BrokerForgotten}, **documented(401, 403, 404, 409, 422)},
        **guarded,
    )
    async def forget_broker(
        request: Request, broker_id: _BrokerId, reason: _Reason = ""
    ) -> Response:
        """For a broker that will not come back: its full volume no longer throttles producers.

        404 when the sidecar remembers nothing of it, 409 when it is active and answers. If the
        other readings do not suffice for a factor, the fallback applies until the next whole
        observation.
        """
        return answer(await changes.forget(request, broker_id, None, reason))

    @app.delete(
        "/v1/brokers/{broker_id}/log-dirs",
        summary="Forget the last reading of a log dir that is offline",
        responses={200: {"model": BrokerForgotten}, **documented(401, 403, 404, 409, 422)},
        **guarded,
    )
    async def forget_log_dir(
        request: Request,
        broker_id: _BrokerId,
        path: Annotated[
            str,
            Query(min_length=1, max_length=4096, description="The log dir's path on the broker."),
        ],
        reason: _Reason = "",
    ) -> Response:
        """For a full disk that will not be repaired soon: it no longer throttles producers.

        Its broker may be active. 404 when the sidecar remembers nothing of the log dir, 409 when
        its broker reads it. When the log dir is back, its sizes count again.
        """
        return answer(await changes.forget(request, broker_id, path, reason))


def _digits(text: str) -> str:
    # int() reads "1_0" as 10: an operator's typo must not forget another broker.
    if not (text.isascii() and text.isdigit()):
        raise ValueError("must be a number in digits")
    return text


_BrokerId = Annotated[
    int,
    Field(ge=0, le=_NODE_ID_MAX),
    BeforeValidator(_digits),
    Path(description="The broker's node id."),
]

_Reason = Annotated[
    str,
    AfterValidator(line),
    Query(
        min_length=1,
        max_length=500,
        description="The reason: one line.",
        json_schema_extra={"format": "line"},
    ),
]


def needs_token(tokens: Tokens) -> params.Depends:
    """Return a dependency that accepts requests with a token."""
    scheme = HTTPBearer(
        auto_error=False,
        scheme_name="token",
        description="The token in the file that SIDECAR_TOKEN_FILE names.",
    )

    async def check(
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(scheme)],
    ) -> None:
        shown = credentials.credentials.encode("latin-1") if credentials is not None else b""
        await check_token(tokens, shown)

    return params.Depends(check)


async def check_token(tokens: Tokens, shown: bytes) -> None:
    """Accept a request's token, or refuse the request.

    Raises:
        HTTPException: 403 when no token is configured, 401 when the request has another token.
    """
    if not tokens.is_set:
        raise HTTPException(
            403,
            "This sidecar has no token, so changes are not enabled: put one into a file, name it "
            "in the sidecar's SIDECAR_TOKEN_FILE, and restart it.",
        )
    if not await tokens.accept(shown):
        raise HTTPException(
            401,
            "The token in Authorization is not the one in the file that the sidecar's "
            "SIDECAR_TOKEN_FILE names."
            if shown
            else "A change needs the token: Authorization: Bearer TOKEN.",
            headers={"WWW-Authenticate": 'Bearer realm="throttle-sidecar"'},
        )
