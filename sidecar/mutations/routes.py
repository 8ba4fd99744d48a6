"""POST /v1/admissions/controller-mutations: may these topics be created, grown or deleted?

Gateways and portals ask this before they send a request to Kafka. The sidecar answers as a
controller would, by the same quotas. Each sidecar has its own token buckets, so all portals of a
cluster must use the same sidecar. A body of 64 KiB has room for about 1,000 operations.

Example: with 5 partitions a second and a bucket at -25 tokens, a topic is rejected with
THROTTLING_QUOTA_EXCEEDED and 5,000 ms. A request 2 s later gets 429 with Retry-After: 3.

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
"""The Retry-After while the quotas can't be read."""

_LONGEST_TOPIC: Final = 249
_INT_MAX: Final = 2**31 - 1

Admit = Callable[[AdmissionRequest], Awaitable[Judged | Muted | Failure]]

Kind = Literal["create_topic", "create_partitions", "delete_topic"]

_CHECKED: Final = ConfigDict(
    strict=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
)


def _whole(number: object) -> object:
    # In JSON, 4.0 is a whole number too.
    return int(number) if isinstance(number, float) and number.is_integer() else number


class MutationOperation(BaseModel):
    """A topic to create, grow or delete."""

    model_config = _CHECKED

    kind: Kind
    """The kind of change."""
    topic: Annotated[str, Field(min_length=1, max_length=_LONGEST_TOPIC)]
    """The topic. It does not have to exist."""
    partitions: Annotated[int, Field(ge=1, le=_INT_MAX), BeforeValidator(_whole)]
    """The partitions that are created, added or deleted."""


class MutationsRequest(BaseModel):
    """A client's request for controller mutations."""

    model_config = _CHECKED

    user: Annotated[
        str,
        Field(min_length=1, max_length=1000, json_schema_extra=NO_PRINCIPAL),
        AfterValidator(user_name),
    ]
    """The principal's name without "User:"."""
    client_id: Annotated[str, Field(max_length=1000)] = ""
    """The client-id. For "", no quota for client-ids applies, not even the default, as in Kafka."""
    mode: Literal["strict", "permissive"] = "strict"
    """strict rejects what exceeds the quota, as Kafka does for clients of 2.7 and newer. permissive
    accepts it and throttles the client afterwards, as for older clients."""
    validate_only: bool = False
    """Whether the request only validates; then it is not charged."""
    operations: Annotated[list[MutationOperation], Field(min_length=1)]
    """The operations, which are judged one by one in this order."""

    def requested(self) -> AdmissionRequest:
        """Return the request to judge."""
        return AdmissionRequest(
            user=self.user,
            client_id=self.client_id,
            amounts=[operation.partitions for operation in self.operations],
            strict=self.mode == "strict",
            validate_only=self.validate_only,
        )


@described
class MutationResult:
    """The result of one operation."""

    topic: str
    """As in the request."""
    kind: Kind
    """As in the request."""
    accepted: bool
    """Whether the operation is accepted. An accepted operation is charged."""
    error: Literal["THROTTLING_QUOTA_EXCEEDED"] | None
    """Kafka's error 89 if the operation is rejected."""
    message: str | None
    """The reason, if the operation is rejected or throttled."""
    throttle_time_ms: Annotated[int, Field(ge=0)]
    """How long to wait, in milliseconds: before a rejected operation, or after an accepted one."""


@described
class MutationsDocument:
    """The result of a request for controller mutations."""

    throttle_time_ms: Annotated[int, Field(ge=0)]
    """The client's wait before its next request, in milliseconds: the shortest of the rejected
    operations, or that after the last operation."""
    results: list[MutationResult]
    """One result for each operation, in the order of the request."""


def add_admissions(app: FastAPI, admit: Admit | None) -> None:
    """Add the route.

    Args:
        app: the application.
        admit: judges a request; None if no brokers are configured.
    """

    @app.post(
        PATH,
        summary="Check controller mutations before they are requested from Kafka",
        responses={200: {"model": MutationsDocument}, **documented(413, 415, 422, 429, 503)},
        openapi_extra=documented_body(_schema()),
    )
    async def admissions(request: Request) -> Response:
        """Judge operations by the client's controller_mutation_rate; charge accepted ones.

        The answer is 429 with Retry-After while the client has to wait, and 503 if the quotas can't
        be read. The bucket belongs to this sidecar, so all clients of a cluster must use one
        sidecar. The route needs no token, because it changes only that bucket.
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
    # References would be resolved in the whole document, which does not contain them.
    del schema["$defs"]
    schema["properties"]["operations"]["items"] = MutationOperation.model_json_schema()
    return schema
