"""The shapes of what the API answers; the OpenAPI document is made from them.

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

_T = TypeVar("_T")

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
NO_PRINCIPAL: Final[dict[str, JsonValue]] = {"not": {"pattern": f"^{PRINCIPAL_TYPE}"}}
"""What a schema says of a user's name; ``entities.user_name`` checks it."""
Factor = Annotated[float, Field(ge=0, le=1)]
SourceName = Literal["observation", "fallback", "override", "disabled", "shadow"]
BrokerStateName = Literal["active", "fenced", "departed"]
LimitName = Annotated[str, Field(json_schema_extra={"enum": [each.name for each in LIMIT_TYPES]})]


@dataclass_transform(frozen_default=True)
def described(shape: type[_T]) -> type[_T]:
    """A frozen dataclass whose docstrings are in the OpenAPI document.

    Nothing is validated with one: their schemas, 0.6 MB, are made when /docs is requested. Nothing
    compares, prints or changes one either: the methods for that, 0.4 MB, are not made, and that
    they are frozen is mypy's to check.
    """
    made = dataclass(slots=True, eq=False, repr=False)(shape)
    config = ConfigDict(use_attribute_docstrings=True, defer_build=True)
    made.__pydantic_config__ = config  # type: ignore[attr-defined] # pydantic reads it
    return made


def _encoded(shape: Any) -> GetPydanticSchema:  # noqa: ANN401 - a type as pydantic reads it
    """Describes a field that is JSON already by the shape of that."""
    return GetPydanticSchema(lambda _raw, handler: handler(shape))


SecondsLeft = Annotated[Raw, _encoded(Annotated[float, Field(ge=0)] | None)]
"""With milliseconds: 12.500."""


@described
class LimitDocument:
    """The limit of every volume: it is violated at or below the value."""

    type: LimitName
    """What is compared."""
    value: float
    """In the unit of the type: bytes, or a share of the volume's bytes."""


@described
class ViolationDocument:
    """A volume at or below the limit, as it was read."""

    broker_id: int
    """The broker's node id."""
    log_dir: str
    """The log dir's path on the broker."""
    total_bytes: int
    """The size of the file system."""
    available_bytes: int
    """What the broker may still write."""
    available_ratio: float
    """Available over total bytes; 0 when the total is 0."""
    limit: LimitDocument | None
    """The limit; null when the sidecar is disabled and has none."""


@described
class ShadowDocument:
    """What would be in force, if it were not only observed (`SIDECAR_MODE=observe`)."""

    factor: Factor
    """The factor."""
    source: SourceName
    """Where it would come from."""
    stop: bool
    """Whether nothing would be admitted."""
    users: int
    """How many single users would be throttled."""


@described
class FactorDocument:
    """The throttle factor in force, and why."""

    factor: Factor
    """Produce quotas are multiplied by it."""
    source: SourceName
    """Where the factor comes from."""
    reason: str
    """One sentence for a person, with the numbers."""
    violations: Annotated[Raw, _encoded(list[ViolationDocument])]
    """The volumes at or below the limit, which an override does not hide."""
    slope: bool
    """Whether the factor is on its slope between the soft limit and the limit. It moves without a
    new generation then; the header Throttle-Factor has it, in a 304 too."""
    stop: bool
    """Whether nothing is admitted, from anybody but those excluded: a volume is at or below the
    stop line. Never by a fallback or an override."""
    stop_violations: Annotated[Raw, _encoded(list[ViolationDocument])]
    """The volumes at or below the stop line and, until the stop ends, those that are not yet above
    it by a tenth; limit is the stop line. An override does not hide them."""
    computed_at: Time | None
    """When the newest valid factor was computed; null when there is none."""
    valid_until: Time | None
    """The last moment at which this is valid without news; null when only news can change it."""
    valid_for_ms: Annotated[int, Field(ge=0)]
    """How long a reader that gets no other answer may use this one, milliseconds. Every answer
    renews it, a 304 too (header Throttle-Valid-For-Ms)."""
    since: Time
    """When factor and source became what they are."""
    generation: Annotated[int, Field(ge=1)]
    """Grows by one when factor, source, override, a user's factor (/v1/quota-factors), the stop,
    the topics, or the set of volumes that violate the limit or stop changes."""
    seconds_to_limit: SecondsLeft
    """When the first online volume of an active broker reaches its limit at the rate it fills; 0
    when one violates it, null when none fills."""
    cluster_id: str | None
    """The Kafka cluster's id; null before the first observation."""
    topics: Annotated[Raw, _encoded(list[str] | None)]
    """The factor is for clients that write to one of these (`SIDECAR_THROTTLE_SCOPE=volume`), which
    brokers with the authorizer can tell; null: for all."""
    shadow: ShadowDocument | None
    """With `SIDECAR_MODE=observe`: what would be in force. Null: the factor above is."""


@described
class LeakDocument:
    """What a broker may let through while the factor is 0.0, and a volume fills all the same."""

    broker: int
    """The broker's node id."""
    share: Annotated[float, Field(gt=0.0, lt=1.0)]
    """Of the leak budget that its callback is set to."""
    pause_max_ms: Annotated[int, Field(gt=0)]
    """How long a pause may be, milliseconds."""


@described
class QuotaFactorsDocument:
    """All factors in force, for the quota callback of a broker."""

    factor: Factor
    """All produce quotas are multiplied by it."""
    source: SourceName
    """Where that factor comes from."""
    reason: str
    """One sentence for a person, with the numbers."""
    users: Annotated[Raw, _encoded(dict[str, Factor])]
    """By user name, the factors of single users; the stricter of such a one and that for all
    is in force."""
    slope: bool
    """Whether the factor is on its slope, as in /v1/throttle-factor: what it multiplies is the
    smaller of a client's quota and its rate before. A sidecar of an earlier version has no such
    member: false."""
    stop: bool
    """Whether nothing is to be admitted, from anybody but those excluded, as in
    /v1/throttle-factor. A sidecar of an earlier version has no such member: false."""
    valid_for_ms: Annotated[int, Field(ge=0)]
    """How long a reader that gets no other answer may use this one, milliseconds. Every answer
    renews it, a 304 too (header Throttle-Valid-For-Ms)."""
    generation: Annotated[int, Field(ge=1)]
    """The decision's, as in /v1/throttle-factor."""
    seconds_to_full: SecondsLeft
    """When the first online volume of an active broker has no byte available at the rate it fills;
    null when none fills."""
    cluster_id: str | None
    """The Kafka cluster's id; null before the first observation."""
    limit: LimitDocument | None
    """The limit of every volume: a callback holds its own broker's volumes against it, also while
    no sidecar answers. Null: none, or this sidecar only observes."""
    stop_line: LimitDocument | None
    """The stop line, likewise."""
    release_margin: Annotated[float, Field(ge=0)]
    """By how much more than the limit a volume must have that violated it; in the limit's unit."""
    scope: Literal["cluster", "volume"]
    """Whose producers are to be throttled (`SIDECAR_THROTTLE_SCOPE`), for a broker's own eyes."""
    topics: Annotated[Raw, _encoded(list[str] | None)]
    """The factor for all is for clients that write to one of these; null: for all, as of a sidecar
    of an earlier version."""
    leaks: Annotated[Raw, _encoded(list[LeakDocument])]
    """The brokers that may let through only a share of their leak budget, since a volume would be
    full all the same. It moves without a new generation: a broker that identifies itself
    (Throttle-Reader) has its own in headers, in a 304 too."""


@described
class RefusedByReason:
    """How many produce requests were refused, by the reason."""

    new_connection: Annotated[int, Field(ge=0)]
    """The connection is newer than the throttle, and its share of the leak budget is used up."""
    stop_line: Annotated[int, Field(ge=0)]
    """A volume is at or below the stop line."""
    release: Annotated[int, Field(ge=0)]
    """It came soon after the release, and its client may have sent it before that."""


@described
class RefusedPerSecond:
    """The same a second, over the last 10 to 20 s of reports."""

    new_connection: Annotated[float, Field(ge=0)]
    """Of connections newer than the throttle."""
    stop_line: Annotated[float, Field(ge=0)]
    """At the stop line."""
    release: Annotated[float, Field(ge=0)]
    """After the release."""


@described
class RefusedClientDocument:
    """A client of which a broker refused produce requests."""

    principal: str
    """Its user, without `User:`; of more than 64 characters the first, and an ellipsis."""
    client_id: str
    """The client-id, likewise."""
    requests: Annotated[int, Field(ge=0)]
    """How many were refused, at least."""
    per_second: Annotated[float, Field(ge=0)]
    """The same a second, over the last 10 to 20 s."""


@described
class RefusalsDocument:
    """The produce requests that a broker's authorizer has refused."""

    total: Annotated[int, Field(ge=0)]
    """All since the broker's start."""
    by_reason: RefusedByReason
    """The same by the reason."""
    per_second: RefusedPerSecond
    """What it refuses now."""
    clients: list[RefusedClientDocument]
    """Who was refused most since the last throttle began, the most first, ten at most."""
    logged: bool
    """Whether the broker's log has an error for each, since it can't be filtered."""


@described
class ScopedClientDocument:
    """A client that a throttle is for, since it writes to a topic on a full volume."""

    principal: str
    """Its user, without `User:`; of more than 64 characters the first, and an ellipsis."""
    client_id: str
    """The client-id, likewise."""
    landed_bytes: Annotated[int, Field(ge=0)]
    """What it has landed in the throttle."""
    bytes_per_second: Annotated[float, Field(ge=0)]
    """The same a second, over the last 10 to 20 s of reports."""


@described
class ReaderDocument:
    """A broker whose quota callback follows the factor, as it reports itself."""

    broker_id: int
    """The broker's node id."""
    last_seen: Time
    """When its last request came."""
    waiting: bool
    """Whether it waits for a change now, and so gets it at once."""
    generation: Annotated[int, Field(ge=1)] | None
    """The newest that it is known to have; null before that. A callback whose generation stays
    behind the decision's does not apply the answers: see its broker's log."""
    emergency: bool
    """Whether its pauses are longer than usual, since a volume will soon be full."""
    throttled_clients: Annotated[int, Field(ge=0)]
    """How many of its clients it throttles."""
    fault: str | None
    """Why it may not throttle some of its clients, as its own guards found: `outdated`,
    `self-test`, `not-asked` or `error`; its broker's log has the details. Null: nothing is
    wrong."""
    refused: RefusalsDocument | None
    """What its authorizer has refused; null without one."""
    in_scope: list[ScopedClientDocument]
    """The clients that a throttle of some topics is for, those that landed most first, fifty at
    most; none where it is for all."""


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
    online: bool
    """False while its broker reports the log dir without sizes."""
    offline_reason: str | None
    """Why it is offline, as its broker reports it; null when it is not."""
    total_bytes: int | None
    """The size of the file system; like the other sizes null when it was never read."""
    used_bytes: int | None
    """Total less available bytes."""
    available_bytes: int | None
    """What the broker may still write."""
    available_ratio: float | None
    """Available over total bytes; 0 when the total is 0."""
    limit_violated: bool | None
    """Whether it was at or below the limit when last read."""
    stop_violated: bool | None
    """Whether it was at or below the stop line when last read; null when none is set, too."""
    read_at: Time | None
    """When the broker was asked for the sizes."""
    fill_bytes_per_second: float | None
    """How fast it fills, negative while it empties; null before a second reading and offline."""
    seconds_to_limit: Annotated[float, Field(ge=0)] | None
    """From now, at that rate; 0 when violated, null when it does not fill."""


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
    """When failures of this kind began; null where that is not known."""


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
    """Why it did not answer when last asked; null when it did."""


@described
class BrokersDocument:
    """The brokers of the cluster, and departed ones whose reading still counts."""

    cluster_id: str | None
    """The Kafka cluster's id; null before the first observation."""
    listed_at: Time | None
    """When the cluster last listed its brokers."""
    failed_polls: int
    """How many polls in a row have failed."""
    last_failure: FailureDocument | None
    """Why the last poll failed; null when it did not."""
    brokers: list[BrokerDocument]
    """The brokers, by id."""


@described
class ChangeDocument:
    """A decision when it began a generation."""

    changed_at: Time
    """When it began."""
    generation: int
    """The generation that began."""
    factor: Factor
    """The factor from then on."""
    source: SourceName
    """Where it came from."""
    reason: str
    """Why, in a sentence."""
    violation_count: int
    """How many volumes were at or below the limit."""
    violations: list[ViolationDocument]
    """The first 20 of them."""
    stop: bool
    """Whether nothing was admitted from then on."""
    stop_violations: list[ViolationDocument]
    """The first 20 of the volumes because of which."""
    computed_at: Time | None
    """When the newest valid factor was computed; null when there was none."""
    valid_until: Time | None
    """Until when it was valid without news, as it was when it began."""


@described
class DecisionsDocument:
    """The last 1,000 changes of the decision since the sidecar started."""

    decisions: list[ChangeDocument]
    """The newest first."""


@described
class OverrideDocument:
    """A factor that an operator set by hand."""

    factor: Factor
    """The factor."""
    reason: str
    """The operator's reason."""
    set_at: Time
    """When it was set."""
    until: Time
    """When it ends by itself."""


@described
class OverrideShown:
    """The override in force."""

    override: OverrideDocument | None
    """Null when there is none."""


@described
class OverrideSet:
    """The override that was set."""

    override: OverrideDocument
    """What is in force from now on."""
    persisted: bool
    """Whether it is on disk, so that it outlasts a restart of the sidecar."""


@described
class OverrideCleared:
    """The override is gone."""

    cleared: bool
    """Whether there was one."""
    persisted: bool
    """Whether that is on disk, so that a restart of the sidecar does not bring it back."""
    factor: Factor
    """The factor in force now."""


@described
class BrokerForgotten:
    """The last reading of a broker, or of one of its log dirs, no longer counts."""

    broker_id: int
    """The broker's node id."""
    log_dirs: list[str]
    """The volumes that were forgotten."""
    persisted: bool
    """Whether that is on disk, so that a restart of the sidecar does not bring it back."""
    factor: Factor
    """The factor in force now."""


@described
class StatusDocument:
    """The sidecar is as it should be."""

    status: str
    """ok."""
