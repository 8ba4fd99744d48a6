"""The documents that the API answers with. The OpenAPI document describes them.

Points in time are RFC 3339 strings in UTC with milliseconds, sizes bytes, durations seconds unless
the name says otherwise.

Example: a volume whose log dir went offline before it was ever read has null for every size.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar, dataclass_transform

from msgspec import Raw
from pydantic import ConfigDict, Field, GetPydanticSchema, JsonValue

from sidecar.quotas.entities import PRINCIPAL_TYPE
from sidecar.throttle.limits import LIMIT_TYPES
from sidecar.throttle.readers import Enforcement

_T = TypeVar("_T")

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
NO_PRINCIPAL: Final[dict[str, JsonValue]] = {"not": {"pattern": f"^{PRINCIPAL_TYPE}"}}
"""The description of a user's name in a schema; ``entities.user_name`` checks the name."""
Factor = Annotated[float, Field(ge=0, le=1)]
SourceName = Literal["observation", "fallback", "override", "disabled", "shadow"]
StateFileName = Literal["written", "pending", "failed", "none"]
BrokerStateName = Literal["active", "fenced", "departed"]
LogDirState = Literal["online", "offline", "unreadable"]
LimitName = Annotated[str, Field(json_schema_extra={"enum": [each.name for each in LIMIT_TYPES]})]


@dataclass_transform(frozen_default=True)
def described(shape: type[_T]) -> type[_T]:
    """A frozen dataclass whose docstrings are in the OpenAPI document.

    To save memory, pydantic's schemas (0.6 MB) are made only when /docs is requested, since nothing
    is validated with a document. Methods to compare, print or change one (0.4 MB) are not made
    either. mypy checks that documents are not changed.
    """
    made = dataclass(slots=True, eq=False, repr=False)(shape)
    config = ConfigDict(use_attribute_docstrings=True, defer_build=True)
    made.__pydantic_config__ = config  # type: ignore[attr-defined] # pydantic reads it
    return made


def _encoded(shape: Any) -> GetPydanticSchema:  # noqa: ANN401 - a type as pydantic reads it
    """Describe a field that is JSON already by the given shape."""
    return GetPydanticSchema(lambda _raw, handler: handler(shape))


SecondsLeft = Annotated[Raw, _encoded(Annotated[float, Field(ge=0)] | None)]
"""Seconds with milliseconds: 12.500."""


@described
class LimitDocument:
    """The limit of every volume."""

    type: LimitName
    """The type of the limit, as its setting's name ends. A volume violates a limit of either type
    when it has no more than the value available."""
    value: float
    """The value in the unit of the type: bytes, or a share of the volume's bytes."""


@described
class ViolationDocument:
    """A volume that violated the limit, or the stop line, when it was last read."""

    broker_id: int
    """The broker's node id."""
    log_dir: str
    """The log dir's path on the broker."""
    total_bytes: int
    """The size of the file system."""
    available_bytes: int
    """The bytes that the broker may still write."""
    available_ratio: float
    """Available over total bytes; 0 when the total is 0."""
    limit: LimitDocument | None
    """The limit; null when the sidecar is disabled and has none."""


@described
class ShadowDocument:
    """The decision that would apply without observe mode (`SIDECAR_MODE=observe`)."""

    factor: Factor
    """The factor."""
    source: SourceName
    """The source of that factor."""
    stop_line_reached: bool
    """Whether brokers with the authorizer would refuse all producers except excluded principals."""
    users: int
    """How many single users would be throttled."""


@described
class FactorDocument:
    """The throttle factor that applies, and why."""

    factor: Factor
    """Produce quotas are multiplied by it."""
    source: SourceName
    """The source of the factor."""
    reason: str
    """One sentence for a person, with the numbers."""
    violations: Annotated[Raw, _encoded(list[ViolationDocument])]
    """The volumes that violate the limit. An override does not hide them."""
    slope: bool
    """Whether the factor is on its slope between the soft limit and the limit. There it moves
    without a new generation; the header Throttle-Factor has it, also in a 304."""
    stop_line_reached: bool
    """Whether the stop line is reached, so that brokers with the authorizer refuse all producers
    except excluded principals. A fallback or an override never sets this."""
    stop_line_violations: Annotated[Raw, _encoded(list[ViolationDocument])]
    """The volumes that violate the stop line. Once it is reached, also the volumes that do not have
    a tenth more yet. Their limit is the stop line. An override does not hide them."""
    computed_at: Time | None
    """When the newest valid factor was computed; null when there is none."""
    valid_until: Time | None
    """The last moment at which this is valid without news; null when only news can end it."""
    valid_for_ms: Annotated[int, Field(ge=0)]
    """How long a reader may use this answer without another, in milliseconds. Every answer
    renews it, also a 304 (header Throttle-Valid-For-Ms)."""
    since: Time
    """When the factor and the source last changed."""
    generation: Annotated[int, Field(ge=1)]
    """Grows by one when one of these changes: the factor, the source, the override, a user's factor
    (/v1/quota-factors), the topics, or the set of volumes that violate the limit or stop line. An
    operator's change counts too."""
    seconds_to_limit: SecondsLeft
    """The time until the first online volume of an active broker reaches its limit at its fill
    rate; 0 when one violates it, null when none does within ten years."""
    cluster_id: str | None
    """The Kafka cluster's id; null before the first observation."""
    topics: Annotated[Raw, _encoded(list[str] | None)]
    """The factor applies only to clients that write to one of these topics
    (`SIDECAR_THROTTLE_SCOPE=volume`), on brokers with the authorizer. Null: it applies to all."""
    readers: Annotated[int, Field(ge=0)]
    """How many brokers' quota callbacks have read this sidecar in the last 10 minutes. While it is
    0 and no quota is lowered, this sidecar throttles nobody, whatever the factor."""
    enforcement: Enforcement
    """What is to enforce the factor (`SIDECAR_ENFORCEMENT`)."""
    lowered_quotas: Annotated[int, Field(ge=0)]
    """How many produce quotas this sidecar has lowered in Kafka. With `client-quotas`, it throttles
    nobody while this is 0, whatever the factor. Quotas may fall while the factor is still 1.0."""
    shadow: ShadowDocument | None
    """In observe mode, the decision that would apply. Null in enforce mode."""


@described
class LeakDocument:
    """How much a broker may let through at factor 0.0 while a volume still fills."""

    broker: int
    """The broker's node id."""
    share: Annotated[float, Field(gt=0.0, lt=1.0)]
    """The share of the leak budget that is set for its callback."""
    pause_max_ms: Annotated[int, Field(gt=0)]
    """The longest pause, milliseconds."""


@described
class BudgetFactorDocument:
    """The factor of clients that write to the topics of an owner past its storage budget."""

    owner: str
    """The owner's name in the file of budgets."""
    factor: Factor
    """It multiplies a client's quota or its previous rate, whichever is lower. At 0, requests to
    these topics are refused."""
    topics: list[str]
    """The owner's topics."""


@described
class QuotaFactorsDocument:
    """All factors that apply, for the quota callback of a broker."""

    factor: Factor
    """All produce quotas are multiplied by it."""
    source: SourceName
    """The source of that factor."""
    reason: str
    """One sentence for a person, with the numbers."""
    users: Annotated[Raw, _encoded(dict[str, Factor])]
    """The factors of single users, by user name. The stricter of this and the factor for all
    applies."""
    slope: bool
    """Whether the factor is on its slope, as in /v1/throttle-factor. There it multiplies the
    client's quota or its previous rate, whichever is lower. A missing member means false."""
    stop: bool
    """Whether the authorizer refuses all producers except excluded principals: `stop_line_reached`
    of /v1/throttle-factor. A missing member means false."""
    valid_for_ms: Annotated[int, Field(ge=0)]
    """How long a reader may use this answer when it gets no other one, milliseconds. Every answer
    renews this time, also a 304 (header Throttle-Valid-For-Ms)."""
    generation: Annotated[int, Field(ge=1)]
    """The generation of the decision, as in /v1/throttle-factor."""
    seconds_to_full: SecondsLeft
    """The time until the first online volume of an active broker is full at its fill rate; null
    when none is within ten years."""
    cluster_id: str | None
    """The Kafka cluster's id; null before the first observation."""
    limit: LimitDocument | None
    """The limit of every volume, with which a callback compares its own broker's volumes. Null
    without a limit, and in observe mode."""
    stop_line: LimitDocument | None
    """The stop line, which a callback uses in the same way."""
    release_margin: Annotated[float, Field(ge=0)]
    """How much more than the limit a violating volume needs until its release, in its unit."""
    scope: Literal["cluster", "volume"]
    """The scope of a throttle (`SIDECAR_THROTTLE_SCOPE`), for brokers that decide by themselves."""
    topics: Annotated[Raw, _encoded(list[str] | None)]
    """The factor applies only to clients that write to one of these topics. Null or missing: it
    applies to all clients."""
    budgets: Annotated[Raw, _encoded(list[BudgetFactorDocument])]
    """The owners past their storage budgets. Of all factors that concern a request, the lowest
    applies."""
    leaks: Annotated[Raw, _encoded(list[LeakDocument])]
    """The brokers that may let through only a share of their leak budget, because a volume would
    become full otherwise. Shares move without a new generation: a broker that identifies itself
    (Throttle-Reader) gets its own share in headers, also in a 304."""


@described
class RefusedByReason:
    """The number of refused produce requests by reason."""

    new_connection: Annotated[int, Field(ge=0)]
    """The connection is newer than the throttle, and its share of the leak budget is used up."""
    stop_line: Annotated[int, Field(ge=0)]
    """The stop line is reached."""
    release: Annotated[int, Field(ge=0)]
    """The request came soon after the release, and its client may have sent it before."""


@described
class RefusedPerSecond:
    """The rate per second, over the last 10 to 20 s of reports."""

    new_connection: Annotated[float, Field(ge=0)]
    """Refusals on connections that are newer than the throttle."""
    stop_line: Annotated[float, Field(ge=0)]
    """Refusals at the stop line."""
    release: Annotated[float, Field(ge=0)]
    """Refusals after the release."""


@described
class RefusedClientDocument:
    """A client of which a broker refused produce requests."""

    principal: str
    """Its user, without `User:`; longer names are cut to 64 characters and an ellipsis."""
    client_id: str
    """The client-id, cut in the same way."""
    requests: Annotated[int, Field(ge=0)]
    """The number of refused requests, at least."""
    per_second: Annotated[float, Field(ge=0)]
    """The rate per second, over the last 10 to 20 s."""


@described
class RefusalsDocument:
    """The produce requests that a broker's authorizer has refused."""

    total: Annotated[int, Field(ge=0)]
    """All refusals since the broker's start."""
    by_reason: RefusedByReason
    """The refusals by reason."""
    per_second: RefusedPerSecond
    """The current refusals per second, by reason."""
    clients: list[RefusedClientDocument]
    """The ten clients with the most refusals since the last throttle began, most first."""
    logged: bool
    """Whether the broker logs each refusal as an error, which can't be filtered there."""


@described
class ScopedClientDocument:
    """A client that a throttle is for, because it writes to a topic on a full volume."""

    principal: str
    """Its user, without `User:`; longer names are cut to 64 characters and an ellipsis."""
    client_id: str
    """The client-id, cut in the same way."""
    landed_bytes: Annotated[int, Field(ge=0)]
    """The bytes that it has written during the throttle."""
    bytes_per_second: Annotated[float, Field(ge=0)]
    """The rate per second, over the last 10 to 20 s of reports."""


@described
class ReserveDocument:
    """The file in a log dir whose bytes a broker gets back when it starts on a full volume."""

    log_dir: str
    """The log dir's path."""
    bytes: Annotated[int, Field(ge=0)]
    """Its bytes; 0 after the broker started from it, until there is space for a new one."""


@described
class ReaderDocument:
    """A broker whose quota callback reads the factor, as the callback reports."""

    broker_id: int
    """The broker's node id."""
    last_seen: Time
    """When its last request came."""
    waiting: bool
    """Whether it waits for a change now, so that it gets the change at once."""
    generation: Annotated[int, Field(ge=1)] | None
    """The newest generation that it is known to have; null while none is known. A callback whose
    generation stays behind does not apply the answers."""
    emergency: bool
    """Whether its pauses are longer than usual, because a volume will soon be full."""
    throttled_clients: Annotated[int, Field(ge=0)]
    """How many of its clients it throttles."""
    fault: str | None
    """Why it may fail to throttle some of its clients, by its own checks: `outdated`, `self-test`,
    `not-refused`, `not-asked`, `disk-hangs` or `error`. Null without a fault."""
    refused: RefusalsDocument | None
    """The refusals of its authorizer; null without an authorizer."""
    in_scope: list[ScopedClientDocument]
    """The clients that a throttle of some topics is for, at most 50, those that wrote most first.
    Empty when the throttle is for all clients."""
    kafka_version: str | None
    """Its version of Kafka; null if an older jar does not report it."""
    jar_version: str | None
    """The version of its callback's jar; null if an older jar does not report it."""
    reserves: list[ReserveDocument]
    """The reserves in its log dirs; empty without any."""


@described
class ReadersDocument:
    """The brokers that requested the factors from this sidecar in the last 10 minutes."""

    generation: Annotated[int, Field(ge=1)]
    """The decision's generation when this was answered."""
    readers: list[ReaderDocument]
    """The readers, by broker."""


@described
class VolumeDocument:
    """The volume behind a log dir, as last read."""

    broker_id: int
    """The broker's node id."""
    broker_state: BrokerStateName
    """Departed: no longer in the cluster's list."""
    log_dir: str
    """The log dir's path on the broker."""
    state: LogDirState
    """Offline: its broker reports a failed disk. Unreadable: its broker reports no sizes, but may
    write there."""
    unread_reason: str | None
    """Why its broker reports no sizes; null when it is online."""
    total_bytes: int | None
    """The size of the file system. All sizes are null when the volume was never read."""
    used_bytes: int | None
    """Total bytes minus available bytes."""
    available_bytes: int | None
    """The bytes that the broker may still write."""
    available_ratio: float | None
    """Available over total bytes; 0 when the total is 0."""
    limit_violated: bool | None
    """Whether it violated the limit when last read."""
    stop_line_violated: bool | None
    """Whether it violated the stop line when last read; null also without a stop line."""
    read_at: Time | None
    """When the request for the sizes was sent."""
    fill_bytes_per_second: float | None
    """The fill rate, negative while it empties; null before a second reading, offline, and
    while its broker is not active."""
    seconds_to_limit: Annotated[float, Field(ge=0)] | None
    """The time until its limit at that rate; 0 when violated, null when that is not
    within ten years."""


@described
class VolumesDocument:
    """Every volume that is remembered, by broker and log dir."""

    generation: int
    """The decision's generation when this was answered."""
    volumes: list[VolumeDocument]
    """The volumes."""


@described
class FailureDocument:
    """Why a broker, or the whole cluster, could not be read."""

    kind: str
    """The class of failure, as in the label of kafka_throttle_poll_failures_total."""
    message: str
    """What failed and what to do."""
    since: Time | None
    """When failures of this kind began; null when that is not known."""


@described
class BrokerDocument:
    """A broker as last seen."""

    broker_id: int
    """The broker's node id."""
    address: str | None
    """host:port; null for a broker that is no longer in the cluster's list."""
    state: BrokerStateName
    """Fenced brokers are listed from Kafka 4.0 on."""
    last_seen: Time | None
    """When it last answered; null when that is not known."""
    last_failure: FailureDocument | None
    """Why it did not answer the last request; null when it did."""


@described
class BrokersDocument:
    """The brokers of the cluster, and departed ones whose reading still counts."""

    cluster_id: str | None
    """The Kafka cluster's id; null before the first observation."""
    listed_at: Time | None
    """When the cluster last listed its brokers."""
    failed_polls: int
    """The number of failed polls in a row."""
    last_failure: FailureDocument | None
    """Why the last poll failed; null when it succeeded."""
    brokers: list[BrokerDocument]
    """The brokers, by id."""


@described
class OperationDocument:
    """An operator's change."""

    what: str
    """The change, such as `forgot broker 3`."""
    by: str
    """The user in the header that `SIDECAR_HTTP_USER_HEADER` names, or `the bearer token`."""
    address: str
    """The address from which the request came; empty if it is unknown."""
    reason: str
    """The operator's reason; empty without one."""


@described
class ChangeDocument:
    """A decision when it began a generation. Its lists have at most 20 volumes."""

    changed_at: Time
    """When it began."""
    generation: int
    """The generation that began."""
    factor: Factor
    """The factor from then on."""
    source: SourceName
    """The source of that factor."""
    reason: str
    """Why, in a sentence."""
    violation_count: int
    """How many volumes violated the limit."""
    violations: list[ViolationDocument]
    """The first 20 of them."""
    stop_line_reached: bool
    """Whether the stop line was reached from then on."""
    stop_line_violations: list[ViolationDocument]
    """The first 20 of the volumes at the stop line."""
    computed_at: Time | None
    """When the newest valid factor was computed; null when there was none."""
    valid_until: Time | None
    """Until when it was valid without news, as it was when it began."""
    operation: OperationDocument | None
    """The operator's change that began it; null if none did."""


@described
class DecisionsDocument:
    """The last 1,000 changes of the decision since the sidecar started."""

    decisions: list[ChangeDocument]
    """The newest first."""


@described
class OverrideDocument:
    """A factor that an operator set."""

    factor: Factor
    """The factor."""
    reason: str
    """The operator's reason."""
    by: str
    """The operator and the address of the request; empty if they are unknown."""
    set_at: Time
    """When it was set."""
    until: Time
    """When it ends by itself."""


@described
class OverrideShown:
    """The current override."""

    override: OverrideDocument | None
    """Null without an override."""


@described
class OverrideSet:
    """The override that was set."""

    override: OverrideDocument
    """The override that applies from now on."""
    persisted: bool
    """Whether the override is on disk, so that a restart of the sidecar keeps it."""
    state_file: StateFileName
    """Whether the state file has the override, which applies in any case: `written`; `pending`,
    the disk has not answered within a second; `failed`; or `none`, there is no such file."""


@described
class OverrideCleared:
    """The override was ended."""

    cleared: bool
    """Whether there was an override, or there may be one in a state file that is not read yet. It
    ends in any case."""
    persisted: bool
    """Whether that is on disk, so that a restart of the sidecar does not bring it back."""
    state_file: StateFileName
    """Whether the state file has the change, as in OverrideSet."""
    factor: Factor
    """The factor that applies now."""


@described
class BrokerForgotten:
    """The last reading of a broker, or of one of its log dirs, no longer counts."""

    broker_id: int
    """The broker's node id."""
    log_dirs: list[str]
    """The volumes that were forgotten. A state file that is not read yet may have others."""
    persisted: bool
    """Whether that is on disk, so that a restart of the sidecar does not bring it back."""
    state_file: StateFileName
    """Whether the state file has the change, as in OverrideSet."""
    factor: Factor
    """The factor that applies now."""


@described
class StatusDocument:
    """The sidecar is healthy."""

    status: str
    """ok, or ready."""
    version: str
    """The version of the sidecar."""
