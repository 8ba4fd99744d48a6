"""POST /v1/admissions/controller-mutations: may these topics be created, grown or deleted?

For gateways and portals that check before they send a request to Kafka. The answer is as a
controller's would be, by the same quotas; the bucket is this sidecar's alone, so a cluster's
portals share one sidecar. A body of 64 KiB has some 1,000 operations; more need several requests.

Example: at 5 partitions a second, with all of the burst used and 25 partitions more, a topic is
rejected with THROTTLING_QUOTA_EXCEEDED and 5,000 ms. Again after 2 s: 429, Retry-After: 3.

Source: KIP-599, "Handling of new Clients" (where the error is still called QUOTA_VIOLATED).
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal

from fastapi import FastAPI
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sidecar.api.answers import answer
from sidecar.api.changes import documented_body, json_body
from sidecar.api.documents import NO_PRINCIPAL, described
from sidecar.api.problems import documented
from sidecar.quotas.entities import user_name
from sidecar.quotas.mutations.admissions import AdmissionRequest, Judged, Muted
from sidecar.volumes import Failure

PATH: Final = "/v1/admissions/controller-mutations"

QUOTA_EXCEEDED: Final = "THROTTLING_QUOTA_EXCEEDED"
REJECTED: Final = "The throttling quota has been exceeded."
"""Kafka's own message."""
THROTTLED: Final = "Accepted, but the throttling quota has been exceeded: wait before the next one."

RETRY_UNKNOWN_S: Final = 5
"""Retry-After while the quotas can't be read."""

_LONGEST_TOPIC: Final = 249
_INT_MAX: Final = 2**31 - 1

Admit = Callable[[AdmissionRequest], Awaitable[Judged | Muted | Failure]]

Kind = Literal["create_topic", "create_partitions", "delete_topic"]

_CHECKED: Final = ConfigDict(
    strict=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
)


def _whole(number: object) -> object:
    # In JSON 4.0 is as much a whole number as 4.
    return int(number) if isinstance(number, float) and number.is_integer() else number


class MutationOperation(BaseModel):
    """One topic to be created, grown, or deleted."""

    model_config = _CHECKED

    kind: Kind
    """What is to be done."""
    topic: Annotated[str, Field(min_length=1, max_length=_LONGEST_TOPIC)]
    """The topic; it need not exist."""
    partitions: Annotated[int, Field(ge=1, le=_INT_MAX), BeforeValidator(_whole)]
    """How many mutations this is: the partitions of the new topic, those added, those deleted."""


class MutationsRequest(BaseModel):
    """Controller mutations that a client wants to request from Kafka."""

    model_config = _CHECKED

    user: Annotated[
        str,
        Field(min_length=1, max_length=1000, json_schema_extra=NO_PRINCIPAL),
        AfterValidator(user_name),
    ]
    """The principal's name without "User:"."""
    client_id: Annotated[str, Field(max_length=1000)] = ""
    """The client's; for "" no quota for a client-id counts, defaults neither, as in Kafka."""
    mode: Literal["strict", "permissive"] = "strict"
    """strict rejects what is over the quota, as for clients since Kafka 2.7; permissive accepts it
    and throttles afterwards, as for older ones."""
    validate_only: bool = False
    """Nothing will be changed, so nothing is charged."""
    operations: Annotated[list[MutationOperation], Field(min_length=1)]
    """Judged in this order, each by itself."""

    def requested(self) -> AdmissionRequest:
        """What is to be judged."""
        return AdmissionRequest(
            user=self.user,
            client_id=self.client_id,
            amounts=[operation.partitions for operation in self.operations],
            strict=self.mode == "strict",
            validate_only=self.validate_only,
        )


@described
class MutationResult:
    """What became of one operation."""

    topic: str
    """As in the request."""
    kind: Kind
    """As in the request."""
    accepted: bool
    """Whether it may be done; it is then charged."""
    error: Literal["THROTTLING_QUOTA_EXCEEDED"] | None
    """Kafka's error 89 where it is rejected."""
    message: str | None
    """Why, where it is rejected or throttled."""
    throttle_time_ms: Annotated[int, Field(ge=0)]
    """How long to wait before it, or after it if it is accepted, milliseconds."""


@described
class MutationsDocument:
    """What became of a request for controller mutations."""

    throttle_time_ms: Annotated[int, Field(ge=0)]
    """How long this user's client must wait before its next request, milliseconds: the least of the
    rejected operations'; where none is rejected, what follows the last one."""
    results: list[MutationResult]
    """One for each operation, in the request's order."""


def add_admissions(app: FastAPI, admit: Admit | None) -> None:
    """Adds the route.

    Args:
        app: gets it.
        admit: judges; None: there are no brokers whose quotas could be read.
    """

    @app.post(
        PATH,
        summary="Check controller mutations before they are requested from Kafka",
        response_model=None,
        responses={200: {"model": MutationsDocument}, **documented(413, 415, 422, 429, 503)},
        openapi_extra=documented_body(_schema()),
    )
    async def admissions(request: Request) -> Response:
        """By the user's and client-id's controller_mutation_rate; what is accepted is charged.

        429 with Retry-After while the client has to wait, 503 when the quotas can't be read. The
        bucket is this sidecar's, so all clients of a cluster use one sidecar. Needs no token, as it
        changes nothing but that bucket.
        """
        requested = await json_body(request, MutationsRequest)
        if admit is None:
            raise HTTPException(503, "No brokers are configured, so their quotas are not known.")
        judged = await admit(requested.requested())
        if isinstance(judged, Failure):
            raise HTTPException(
                503,
                f"The quotas are not known: {judged.message}",
                headers={"Retry-After": str(RETRY_UNKNOWN_S)},
            )
        if isinstance(judged, Muted):
            raise HTTPException(
                429,
                f"This client's wait is not over: {judged.left_ms} ms are left.",
                headers={"Retry-After": str(-(-judged.left_ms // 1000))},
            )
        return answer(_document(requested, judged))


def _document(requested: MutationsRequest, judged: Judged) -> MutationsDocument:
    results = [
        MutationResult(
            topic=operation.topic,
            kind=operation.kind,
            accepted=admission.accepted,
            error=None if admission.accepted else QUOTA_EXCEEDED,
            message=(THROTTLED if admission.throttle_ms else None)
            if admission.accepted
            else REJECTED,
            throttle_time_ms=admission.throttle_ms,
        )
        for operation, admission in zip(requested.operations, judged.admissions, strict=True)
    ]
    return MutationsDocument(judged.throttle_ms, results)


def _schema() -> dict[str, Any]:
    schema = MutationsRequest.model_json_schema()
    # References would be resolved in the whole document, which does not have them.
    del schema["$defs"]
    schema["properties"]["operations"]["items"] = MutationOperation.model_json_schema()
    return schema
