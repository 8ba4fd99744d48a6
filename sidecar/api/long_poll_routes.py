"""The routes for long polls, which answer at the next change.

Example: ``GET /v1/quota-factors`` with ``If-None-Match`` and ``Prefer: wait=60`` is answered when
the decision changes, or with 304 after 60 s.
"""

from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from sidecar.api.answers import Wall
from sidecar.api.documents import FactorDocument, QuotaFactorsDocument
from sidecar.api.long_poll import LongPoll
from sidecar.api.long_poll_documents import (
    FACTOR,
    LEAK_SHARE,
    LIMIT_IN,
    OBSERVED_AGO,
    PAUSE_MAX,
    VALID_FOR,
    factor_document,
    quota_factors_document,
)
from sidecar.api.problems import documented
from sidecar.control.board import Board


def add_long_polls(app: FastAPI, board: Board, wall: Wall) -> None:
    """Add the routes for long polls.

    Args:
        app: gets the routes.
        board: the board whose snapshots are served.
        wall: steady seconds -> epoch seconds of the machine's clock.
    """
    polls = LongPoll(board)
    factor = factor_document(wall, lambda: board.readers.counts(board.now()))
    quota_factors = quota_factors_document(wall, board.leak_rules)

    @app.get(
        "/v1/throttle-factor",
        summary="The throttle factor that applies, and why",
        responses={
            **_responses(FactorDocument, {}, {"text/plain": {"schema": {"type": "string"}}}),
            **documented(503),
        },
        openapi_extra={"parameters": _HEADERS},
    )
    async def throttle_factor(request: Request) -> Response:
        """Answers at once, or waits for the next change, depending on the request's headers.

        With `If-None-Match` it answers 304 while nothing has changed. With `Prefer: wait=SECONDS`
        in addition, it waits for the next change. With `Accept: text/plain` it answers the number.
        Answers 503 while the state file is not read and the answer may release a throttle.
        """
        return await polls.read(request, factor)

    @app.get(
        "/v1/quota-factors",
        summary="All factors that apply, for a broker's quota callback",
        responses={**_responses(QuotaFactorsDocument, _LEFT, {}), **documented(503)},
        openapi_extra={"parameters": _HEADERS},
    )
    async def all_quota_factors(request: Request) -> Response:
        """The factor for all, the factors of single users, and how much brokers may let through.

        Waits, and answers 304 and 503, as the throttle factor does. Headers have values that move.
        """
        return await polls.read(request, quota_factors)


def _parameter(name: str, description: str) -> dict[str, object]:
    return {
        "name": name,
        "in": "header",
        "schema": {"type": "string"},
        "description": description,
    }


_HEADERS: Final = [
    _parameter("If-None-Match", "The ETag of the last answer; 304 while nothing changed."),
    _parameter(
        "Prefer",
        "wait=SECONDS (RFC 7240): with a matching If-None-Match, wait for a change. "
        "At most 300 s, and at most half of the remaining validity.",
    ),
    _parameter(
        "Throttle-Reader",
        "broker=NODE_ID; emergency=true or false; throttled_clients=NUMBER, and ; fault=WORD with "
        "a fault: the report of a broker's quota callback, for /v1/readers. Another form "
        "is ignored.",
    ),
    _parameter(
        "Throttle-Broker",
        "NODE_ID of a broker that reads another sidecar, and needs the headers of its leak.",
    ),
    _parameter(
        "Throttle-Refused",
        "new_connection=NUMBER; stop_line=NUMBER; release=NUMBER; "
        "clients=PRINCIPAL/CLIENT_ID:NUMBER,...; logged=true: with Throttle-Reader, the number of "
        "produce requests that the broker's authorizer has refused since its start, the clients "
        "with the most since the last throttle began (names percent-encoded), and whether its log "
        "has an error for each.",
    ),
    _parameter(
        "Throttle-Reserve",
        "LOG_DIR:BYTES,...: with Throttle-Reader, the bytes of the broker's reserve in each log "
        "dir (path percent-encoded); 0 after the broker started from it.",
    ),
    _parameter("Throttle-Kafka", "With Throttle-Reader, the broker's version of Kafka."),
    _parameter("Throttle-Jar", "With Throttle-Reader, the version of the callback's jar."),
    _parameter(
        "Throttle-Scope",
        "clients=PRINCIPAL/CLIENT_ID:BYTES,...: with Throttle-Reader, while a throttle is only for "
        "some topics: the clients that it is for, and the bytes that each has written during it.",
    ),
]

_FACTOR: Final[dict[str, Any]] = {
    "schema": {"type": "number"},
    "description": "The factor while it is on its slope, where it moves without a new generation.",
}

_AGE: Final[dict[str, Any]] = {
    "schema": {"type": "integer"},
    "description": "The age of the oldest reading behind the computed factor, in ms; absent "
    "without one. A reader of several sidecars trusts the youngest.",
}

_LEFT: Final[dict[str, Any]] = {
    LIMIT_IN: {
        "schema": {"type": "integer"},
        "description": "The time until the first volume is at its limit at its fill rate, in ms; "
        "absent when that is more than a minute, and while the factor is 0.0 or not computed. When "
        "no sidecar answers any more, a callback throttles from that moment on.",
    },
    LEAK_SHARE: {
        "schema": {"type": "number"},
        "description": "The share of its leak budget that the broker in Throttle-Reader or "
        "Throttle-Broker may let through; absent while it is 1, and without such a header.",
    },
    PAUSE_MAX: {
        "schema": {"type": "integer"},
        "description": "With Throttle-Leak-Share, the longest pause of that broker, in ms.",
    },
}


def _responses(
    model: type, further: dict[str, Any], content: dict[str, Any]
) -> dict[int | str, dict[str, Any]]:
    """Document a 200 and a 304, with headers and media types beside the common ones."""
    return {
        200: {
            "model": model,
            "content": content,
            "headers": {
                "ETag": {
                    "schema": {"type": "string"},
                    "description": "Weak: the id of the start and the generation; never repeated.",
                },
                VALID_FOR: {
                    "schema": {"type": "integer"},
                    "description": "How long a reader may use this answer when it gets no other, "
                    "in ms.",
                },
                OBSERVED_AGO: _AGE,
                FACTOR: _FACTOR,
                "Preference-Applied": {
                    "schema": {"type": "string"},
                    "description": "wait=SECONDS, when the sidecar waited before it answered.",
                },
                **further,
            },
        },
        304: {
            "description": "Nothing has changed; the validity is renewed.",
            "headers": {
                VALID_FOR: {
                    "schema": {"type": "integer"},
                    "description": "How long the reader may use its last answer from now, in ms.",
                },
                OBSERVED_AGO: _AGE,
                FACTOR: _FACTOR,
                **further,
            },
        },
    }
