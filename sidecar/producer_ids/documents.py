"""The documents of the API about producer ids (KIP-936).

Example: a user without a quota has null for ``producer_ids_rate`` and ``tokens``, and is never
throttled.
"""

from typing import Annotated, Literal

from pydantic import Field

from sidecar.api.documents import StateFileName, Time, described

Count = Annotated[int, Field(ge=0)]
OriginName = Literal["setting", "file", "api"]


@described
class IdQuotaDocument:
    """A user's quota on new producer ids, and its origin."""

    user: str | None
    """The principal's name without "User:"; null for the default."""
    producer_ids_rate: float | None
    """New ids per window; null means any number."""
    throttled_request_percentage: float | None
    """The request_percentage that the sidecar sets in Kafka while the user is throttled; null means
    that only the factor throttles the user."""
    origin: OriginName
    """The origin: this API, the file, or the setting. The API overrides the file, and the file
    overrides the setting."""


@described
class UserIdsDocument:
    """A user's producer ids."""

    user: str
    """The principal's name without "User:"."""
    rate: float
    """New ids per window, averaged over all windows."""
    producer_ids_rate: float | None
    """The quota: new ids per window; null means any number."""
    tokens: float | None
    """How many new ids the user may still open. Each window adds the ids of one window. The user is
    throttled while the number is negative."""
    throttle_time_ms: Count
    """How long the user will be throttled if no new id comes."""
    throttled_since: Time | None
    """Since when the user's produce factor is 0.0; null if it is not."""
    throttled_until: Time | None
    """When the throttle ends if no new id comes."""
    reason: str | None
    """The reason in a sentence."""
    throttled_by: str | None
    """The capability that throttles the user: "producer_ids", or another one if its throttle ends
    later; null if the user is not throttled."""


@described
class RequestLogDocument:
    """How much of the broker's request log was read since the start."""

    file: str
    """Its path."""
    exists: bool
    """Whether it exists."""
    lines: Count
    """Lines read."""
    rejected_lines: dict[str, Count]
    """Lines that could not be read, by reason; `other` are lines of other loggers."""
    unreadable: bool
    """Whether most of the newest requests could not be read. No user is throttled for them."""
    behind_bytes: Count
    """Bytes that are not read yet."""
    dropped_lines: Count
    """Lines that were skipped because they were too long."""
    dropped_bytes: Count
    """Bytes that were skipped, to catch up or because a line was too long."""


@described
class PeerDocument:
    """Another sidecar, from which this one requests the ids of its broker."""

    url: str
    """Its address."""
    ids: Count
    """How many ids it reported."""
    lost: Count
    """How many ids it no longer had when this sidecar requested them."""
    failure: str | None
    """Why the last request to it failed; null if it did not."""


@described
class ActiveIdsDocument:
    """The active producers that brokers report."""

    is_scanning: bool
    """Whether this sidecar scans. If not, observers scan and report the ids that write, and the
    numbers of partitions and producers here are 0."""
    is_complete: bool
    """Whether the last scan read all partitions. Ids on unread partitions do not count."""
    failure: str | None
    """Why a partition was not read."""
    partitions: Count
    """Partitions that the last scan read."""
    partitions_not_read: Count
    """Partitions that it did not read, because of a failure or because there are too many."""
    producers: Count
    """Producers of these partitions; a producer that writes to two partitions counts twice."""
    active: Count
    """Ids that wrote between the last two scans."""
    unknown_owner: Count
    """Ids that wrote since the start without their owner being reported within 10 s. They throttle
    no user."""


@described
class ProducerIdsDocument:
    """The producer ids of each user, and the sources of these numbers."""

    window_num: int
    """The number of windows whose ids may come at once."""
    window_size_seconds: int
    """The length of a window, in seconds."""
    filter_bytes: Count
    """The memory for known ids."""
    dropped: Count
    """Ids that were not counted, for lack of room or by the name of their user. They throttle no
    user."""
    counts: Literal["active", "allocated"]
    """When an id counts: when it writes, or when it is allocated."""
    active: ActiveIdsDocument | None
    """The ids that write. It is null if ids count when they are allocated, or if neither a request
    log nor another sidecar reports their owners."""
    request_log: RequestLogDocument | None
    """The request log of the broker beside this sidecar; null if none is read."""
    peers: list[PeerDocument]
    """The other sidecars."""
    users: list[UserIdsDocument]
    """Every user with new ids in the last windows, and every throttled user, sorted by name."""


@described
class IdQuotasDocument:
    """The current producer id quotas."""

    quotas: list[IdQuotaDocument]
    """The default first, then by user."""


@described
class IdQuotaSet:
    """The result of setting a quota."""

    quota: IdQuotaDocument
    """The quota that applies now."""
    persisted: bool
    """Whether the change outlasts a restart."""
    state_file: StateFileName
    """Whether the state file has the change, as in OverrideSet."""


@described
class IdQuotaCleared:
    """The result of removing a quota."""

    cleared: bool
    """Whether there was a quota that had been set over this API."""
    quota: IdQuotaDocument
    """The quota that applies now."""
    persisted: bool
    """Whether the change outlasts a restart."""
    state_file: StateFileName
    """Whether the state file has the change, as in OverrideSet."""


@described
class AllocatedIdDocument:
    """An id that the broker beside this sidecar allocated, or to which it was written."""

    user: str | None
    """The principal's name without "User:"; null if the id wrote and its owner is unknown."""
    producer_id: Count
    """The id."""
    wrote: bool
    """True if the id wrote; false if it was allocated."""


@described
class AllocatedIdsDocument:
    """Ids that the broker beside this sidecar allocated, for other sidecars."""

    next: str
    """The value of ``after`` for the next request."""
    lost: Count
    """How many ids were requested too late."""
    ids: list[AllocatedIdDocument]
    """The ids, in the order in which they were allocated."""
