"""The shapes of what the API answers; the OpenAPI document is made from them.

Points in time are RFC 3339 strings in UTC with milliseconds, sizes bytes, durations seconds unless
the name says otherwise.

Example: a volume whose log dir went offline before it was ever read has null for every size.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from pydantic import ConfigDict, Field, JsonValue

from sidecar.quotas.entities import PRINCIPAL_TYPE
from sidecar.throttle.limits import LIMIT_TYPES

# Nothing is validated with these: their schemas, 0.6 MB, are made when someone asks for /docs.
_DESCRIBED = ConfigDict(use_attribute_docstrings=True, defer_build=True)

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
NO_PRINCIPAL: Final[dict[str, JsonValue]] = {"not": {"pattern": f"^{PRINCIPAL_TYPE}"}}
"""What a schema says of a user's name; ``entities.user_name`` checks it."""
Factor = Annotated[float, Field(ge=0, le=1)]
SourceName = Literal["observation", "fallback", "override", "disabled"]
BrokerStateName = Literal["active", "fenced", "departed"]
LimitName = Annotated[str, Field(json_schema_extra={"enum": [each.name for each in LIMIT_TYPES]})]


@dataclass(frozen=True, slots=True)
class LimitDocument:
    """The limit that a volume is held against: it is violated at or below the value."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    type: LimitName
    """What is compared."""
    value: float
    """In the unit of the type: bytes, or a share of the volume's bytes."""


@dataclass(frozen=True, slots=True)
class ViolationDocument:
    """A volume at or below the limit, as it was read."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

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


@dataclass(frozen=True, slots=True)
class FactorDocument:
    """The throttle factor in force, and why."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    factor: Factor
    """Produce quotas are multiplied by it."""
    source: SourceName
    """Where the factor comes from."""
    reason: str
    """One sentence for a person, with the numbers."""
    violations: list[ViolationDocument]
    """The volumes at or below the limit, which an override does not hide."""
    computed_at: Time | None
    """When the newest valid factor was computed; null when there is none."""
    valid_until: Time | None
    """The last moment at which this holds without news; null when only news can change it."""
    valid_for_ms: Annotated[int, Field(ge=0)]
    """How long a reader that hears nothing more may use this answer, milliseconds. Every answer
    renews it, a 304 too (header Throttle-Valid-For-Ms)."""
    since: Time
    """When factor and source became what they are."""
    generation: Annotated[int, Field(ge=1)]
    """Grows by one when factor, source, override, a user's factor (/v1/quota-factors) or the set of
    violating volumes changes."""
    seconds_to_limit: Annotated[float, Field(ge=0)] | None
    """When the first online volume of an active broker reaches its limit at the rate it fills; 0
    when one violates it, null when none fills."""
    cluster_id: str | None
    """The Kafka cluster's id; null before the first observation."""


@dataclass(frozen=True, slots=True)
class QuotaFactorsDocument:
    """All factors in force, for the quota callback of a broker."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    factor: Factor
    """All produce quotas are multiplied by it."""
    source: SourceName
    """Where that factor comes from."""
    reason: str
    """One sentence for a person, with the numbers."""
    users: dict[str, Factor]
    """By user name, the factors of single users; the stricter of such a one and that for all
    holds."""
    valid_for_ms: Annotated[int, Field(ge=0)]
    """How long a reader that hears nothing more may use this answer, milliseconds. Every answer
    renews it, a 304 too (header Throttle-Valid-For-Ms)."""
    generation: Annotated[int, Field(ge=1)]
    """The decision's, as in /v1/throttle-factor."""
    seconds_to_full: Annotated[float, Field(ge=0)] | None
    """When the first online volume of an active broker has no byte available at the rate it fills;
    null when none fills. A 304 has it too (header Throttle-Seconds-To-Full)."""
    cluster_id: str | None
    """The Kafka cluster's id; null before the first observation."""


@dataclass(frozen=True, slots=True)
class ReaderDocument:
    """A broker whose quota callback follows the factor, by its own words."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    broker_id: int
    """The broker's node id."""
    last_seen: Time
    """When its last request came."""
    waiting: bool
    """Whether it waits for a change now, and so hears of it at once."""
    generation: Annotated[int, Field(ge=1)] | None
    """The newest that it was heard to have; null before that. One that stays behind the decision's
    does not take what it is told: see its broker's log."""
    emergency: bool
    """Whether its pauses are longer than usual, since a volume will soon be full."""
    throttled_clients: Annotated[int, Field(ge=0)]
    """How many of its clients it holds."""


@dataclass(frozen=True, slots=True)
class ReadersDocument:
    """The brokers that asked this sidecar for the factors in the last 10 minutes."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    generation: Annotated[int, Field(ge=1)]
    """The decision's generation when this was answered."""
    readers: list[ReaderDocument]
    """The readers, by broker."""


@dataclass(frozen=True, slots=True)
class VolumeDocument:
    """The volume behind a log dir, as last read."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    broker_id: int
    """The broker's node id."""
    broker_state: BrokerStateName
    """Departed: no longer in the cluster's list."""
    log_dir: str
    """The log dir's path on the broker."""
    online: bool
    """False while its broker reports the log dir without sizes."""
    offline_reason: str | None
    """Why it is offline, in its broker's words; null when it is not."""
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
    read_at: Time | None
    """When the sizes were read."""
    fill_bytes_per_second: float | None
    """How fast it fills, negative while it empties; null before a second reading and offline."""
    seconds_to_limit: Annotated[float, Field(ge=0)] | None
    """From now, at that rate; 0 when violated, null when it does not fill."""


@dataclass(frozen=True, slots=True)
class VolumesDocument:
    """Every volume that is remembered, by broker and log dir."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    generation: int
    """The decision's generation when this was answered."""
    volumes: list[VolumeDocument]
    """The volumes."""


@dataclass(frozen=True, slots=True)
class FailureDocument:
    """Why a broker, or the whole cluster, could not be read."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    kind: str
    """The class of failure, as in the label of kafka_throttle_poll_failures_total."""
    message: str
    """What failed and what to do."""
    since: Time | None
    """When failures of this kind began; null where that is not kept."""


@dataclass(frozen=True, slots=True)
class BrokerDocument:
    """A broker as last seen."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    broker_id: int
    """The broker's node id."""
    address: str | None
    """host:port; null for a broker that is no longer in the cluster's list."""
    state: BrokerStateName
    """Fenced brokers are listed from Kafka 4.0 on."""
    last_seen: Time | None
    """When it last answered; null when that is not remembered."""
    last_failure: FailureDocument | None
    """Why it did not answer when last asked; null when it did."""


@dataclass(frozen=True, slots=True)
class BrokersDocument:
    """The brokers of the cluster, and departed ones whose reading still counts."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    cluster_id: str | None
    """The Kafka cluster's id; null before the first observation."""
    listed_at: Time | None
    """When the cluster last said which brokers it has."""
    failed_polls: int
    """How many polls in a row have failed."""
    last_failure: FailureDocument | None
    """Why the last poll failed; null when it did not."""
    brokers: list[BrokerDocument]
    """The brokers, by id."""


@dataclass(frozen=True, slots=True)
class ChangeDocument:
    """A decision when it began a generation."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

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
    """The first 100 of them."""
    computed_at: Time | None
    """When the newest valid factor was computed; null when there was none."""
    valid_until: Time | None
    """Until when it held without news, as it was when it began."""


@dataclass(frozen=True, slots=True)
class DecisionsDocument:
    """The last 1,000 changes of the decision since the sidecar started."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    decisions: list[ChangeDocument]
    """The newest first."""


@dataclass(frozen=True, slots=True)
class OverrideDocument:
    """A factor that an operator set by hand."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    factor: Factor
    """The factor."""
    reason: str
    """The operator's words."""
    set_at: Time
    """When it was set."""
    until: Time
    """When it ends by itself."""


@dataclass(frozen=True, slots=True)
class OverrideShown:
    """The override in force."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    override: OverrideDocument | None
    """Null when there is none."""


@dataclass(frozen=True, slots=True)
class OverrideSet:
    """The override that was set."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    override: OverrideDocument
    """What is in force from now on."""
    persisted: bool
    """Whether it is on disk, so that a restart of the sidecar keeps it."""


@dataclass(frozen=True, slots=True)
class OverrideCleared:
    """The override is gone."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    cleared: bool
    """Whether there was one."""
    persisted: bool
    """Whether that is on disk, so that a restart of the sidecar does not bring it back."""
    factor: Factor
    """The factor in force now."""


@dataclass(frozen=True, slots=True)
class BrokerForgotten:
    """A broker's last reading no longer counts."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    broker_id: int
    """The broker's node id."""
    log_dirs: list[str]
    """The volumes that were forgotten."""
    persisted: bool
    """Whether that is on disk, so that a restart of the sidecar does not bring it back."""
    factor: Factor
    """The factor in force now."""


@dataclass(frozen=True, slots=True)
class StatusDocument:
    """That it is as it should be."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    status: str
    """ok, or why it is ready."""
