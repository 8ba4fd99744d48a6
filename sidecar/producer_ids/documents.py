"""The shapes of what the API answers about producer ids (KIP-936).

Example: a user under no quota has null for ``producer_ids_rate`` and ``tokens``, and is never held.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from sidecar.api.documents import Time

_DESCRIBED = ConfigDict(use_attribute_docstrings=True, defer_build=True)

Count = Annotated[int, Field(ge=0)]
OriginName = Literal["setting", "file", "api"]


@dataclass(frozen=True, slots=True)
class IdQuotaDocument:
    """How many new producer ids a user may have, and who said so."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    user: str | None
    """The principal's name without "User:"; null: all for whom nothing else is said."""
    producer_ids_rate: float | None
    """New ids in a window; null: any number."""
    throttled_request_percentage: float | None
    """The request_percentage that such a user has in Kafka while they are held; null: they are held
    by the factor alone."""
    origin: OriginName
    """Where it was said: over this API, in the file, or by the setting. The API wins over the file,
    and that over the setting."""


@dataclass(frozen=True, slots=True)
class UserIdsDocument:
    """A user's producer ids."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    user: str
    """The principal's name without "User:"."""
    rate: float
    """New ids in a window, averaged over all windows."""
    producer_ids_rate: float | None
    """New ids in a window that are allowed; null: any number."""
    tokens: float | None
    """New ids that are left, refilled by a window's worth in a window; below 0 the user is held."""
    throttle_time_ms: Count
    """How long the user is held from now on if no new id comes."""
    throttled_since: Time | None
    """Since when the user's produce factor is 0.0; null when it is not."""
    throttled_until: Time | None
    """Until when, if no new id comes."""
    reason: str | None
    """Why, in a sentence."""
    throttled_by: str | None
    """Whose throttle is in force: "producer_ids", or another capability's, which ends later; null
    when the user is not throttled."""


@dataclass(frozen=True, slots=True)
class RequestLogDocument:
    """What was read of the broker's request log since the start."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    file: str
    """Its path."""
    exists: bool
    """Whether there is a file."""
    lines: Count
    """Lines that were read."""
    behind_bytes: Count
    """What is not read yet."""
    dropped_lines: Count
    """Lines that were too long."""
    dropped_bytes: Count
    """Bytes that were skipped to catch up, and those of lines that were too long."""


@dataclass(frozen=True, slots=True)
class PeerDocument:
    """Another sidecar that is asked for its broker's ids."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    url: str
    """Its address."""
    ids: Count
    """How many it told of."""
    lost: Count
    """How many it no longer had when it was asked."""
    failure: str | None
    """Why it did not answer when last asked; null when it did."""


@dataclass(frozen=True, slots=True)
class ActiveIdsDocument:
    """What brokers tell of the producers that write."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    is_complete: bool
    """Whether the last look saw all partitions; what is not seen counts for nobody."""
    failure: str | None
    """Why not, of one that was not seen."""
    partitions: Count
    """Partitions that the last look saw."""
    partitions_not_read: Count
    """Partitions that it did not, or that there are too many of."""
    producers: Count
    """Producers that brokers remember on these; one of two partitions counts twice."""
    active: Count
    """Ids that wrote between the last two looks."""
    unknown_owner: Count
    """Ids that wrote since the start and whose owner nobody told within 10 s; they hold nobody."""


@dataclass(frozen=True, slots=True)
class ProducerIdsDocument:
    """Who opens how many producer ids, and where that is known from."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    window_num: int
    """How many windows' ids may come at once."""
    window_size_seconds: int
    """The window that ids are counted in, seconds."""
    filter_bytes: Count
    """What remembering ids takes."""
    dropped: Count
    """Ids that there was no room to count; nobody is held for them."""
    counts: Literal["active", "allocated"]
    """When an id counts: when it writes, or when it is given."""
    active: ActiveIdsDocument | None
    """What is known of ids that write; null when ids count when they are given, and when neither a
    request log nor other sidecars tell whose they are."""
    request_log: RequestLogDocument | None
    """The request log of the broker beside this sidecar; null when none is read."""
    peers: list[PeerDocument]
    """The other sidecars that are asked."""
    users: list[UserIdsDocument]
    """Every user with new ids in the last windows, and those that are held, by name."""


@dataclass(frozen=True, slots=True)
class IdQuotasDocument:
    """The producer id quotas in force."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    quotas: list[IdQuotaDocument]
    """The default first, then by user."""


@dataclass(frozen=True, slots=True)
class IdQuotaSet:
    """A quota that was put."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    quota: IdQuotaDocument
    """What is in force now."""
    persisted: bool
    """Whether a restart will still know it."""


@dataclass(frozen=True, slots=True)
class IdQuotaCleared:
    """A quota that was taken away."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    cleared: bool
    """Whether there was one that had been put."""
    quota: IdQuotaDocument
    """What is in force now."""
    persisted: bool
    """Whether a restart will still know it."""


@dataclass(frozen=True, slots=True)
class AllocatedIdDocument:
    """An id that the broker beside this sidecar gave to a producer, or that wrote to it."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    user: str | None
    """The principal's name without "User:"; null: of an id that wrote, and nobody knows here whose
    it is."""
    producer_id: Count
    """The id."""
    wrote: bool
    """Whether it is told because it wrote, and not because it was given."""


@dataclass(frozen=True, slots=True)
class AllocatedIdsDocument:
    """A piece of the ids that the broker beside this sidecar gave, for the other sidecars."""

    __pydantic_config__: ClassVar[ConfigDict] = _DESCRIBED

    next: str
    """What to ask for next: ``after`` of the next request."""
    lost: Count
    """How many were asked for too late."""
    ids: list[AllocatedIdDocument]
    """In the order in which they were given."""
