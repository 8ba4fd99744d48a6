"""The shapes of what the API answers about producer ids (KIP-936).

Example: a user under no quota has null for ``producer_ids_rate`` and ``tokens``, and is never
throttled.
"""

from typing import Annotated, Literal

from pydantic import Field

from sidecar.api.documents import Time, described

Count = Annotated[int, Field(ge=0)]
OriginName = Literal["setting", "file", "api"]


@described
class IdQuotaDocument:
    """How many new producer ids a user may have, and who said so."""

    user: str | None
    """The principal's name without "User:"; null: all for whom nothing else is said."""
    producer_ids_rate: float | None
    """New ids in a window; null: any number."""
    throttled_request_percentage: float | None
    """The request_percentage that such a user has in Kafka while they are throttled; null: they are
    throttled by the factor alone."""
    origin: OriginName
    """Where it was said: over this API, in the file, or by the setting. The API wins over the file,
    and that over the setting."""


@described
class UserIdsDocument:
    """A user's producer ids."""

    user: str
    """The principal's name without "User:"."""
    rate: float
    """New ids in a window, averaged over all windows."""
    producer_ids_rate: float | None
    """New ids in a window that are allowed; null: any number."""
    tokens: float | None
    """New ids that are left, refilled by a window's worth in a window; below 0 the user is
    throttled."""
    throttle_time_ms: Count
    """How long the user is throttled from now on if no new id comes."""
    throttled_since: Time | None
    """Since when the user's produce factor is 0.0; null when it is not."""
    throttled_until: Time | None
    """Until when, if no new id comes."""
    reason: str | None
    """Why, in a sentence."""
    throttled_by: str | None
    """Whose throttle is in force: "producer_ids", or another capability's, which ends later; null
    when the user is not throttled."""


@described
class RequestLogDocument:
    """What was read of the broker's request log since the start."""

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


@described
class PeerDocument:
    """Another sidecar, whose broker's ids are requested."""

    url: str
    """Its address."""
    ids: Count
    """How many it reported."""
    lost: Count
    """How many it no longer had when they were requested."""
    failure: str | None
    """Why the last request to it failed; null when it did not."""


@described
class ActiveIdsDocument:
    """What brokers report of the producers that write."""

    is_scanning: bool
    """Whether this sidecar scans; false: observers do, and report to it which ids write, and the
    numbers of partitions and producers here are 0."""
    is_complete: bool
    """Whether the last scan read all partitions, if this sidecar scans; what is not read counts for
    nobody."""
    failure: str | None
    """Why one was not read."""
    partitions: Count
    """Partitions that the last scan read."""
    partitions_not_read: Count
    """Partitions that it did not read, or that are too many."""
    producers: Count
    """Producers that brokers remember on these; one of two partitions counts twice."""
    active: Count
    """Ids that wrote between the last two scans."""
    unknown_owner: Count
    """Ids that wrote since the start and whose owner nobody reported within 10 s; they throttle
    nobody."""


@described
class ProducerIdsDocument:
    """Who opens how many producer ids, and where that is known from."""

    window_num: int
    """How many windows' ids may come at once."""
    window_size_seconds: int
    """The window that ids are counted in, seconds."""
    filter_bytes: Count
    """What remembering ids takes."""
    dropped: Count
    """Ids that there was no room to count; nobody is throttled for them."""
    counts: Literal["active", "allocated"]
    """When an id counts: when it writes, or when it is allocated."""
    active: ActiveIdsDocument | None
    """What is known of ids that write; null when ids count when they are allocated, and when
    neither a request log nor other sidecars report whose they are."""
    request_log: RequestLogDocument | None
    """The request log of the broker beside this sidecar; null when none is read."""
    peers: list[PeerDocument]
    """The other sidecars."""
    users: list[UserIdsDocument]
    """Every user with new ids in the last windows, and those that are throttled, by name."""


@described
class IdQuotasDocument:
    """The producer id quotas in force."""

    quotas: list[IdQuotaDocument]
    """The default first, then by user."""


@described
class IdQuotaSet:
    """A quota that was put."""

    quota: IdQuotaDocument
    """What is in force now."""
    persisted: bool
    """Whether a restart will still know it."""


@described
class IdQuotaCleared:
    """A quota that was taken away."""

    cleared: bool
    """Whether there was one that had been put."""
    quota: IdQuotaDocument
    """What is in force now."""
    persisted: bool
    """Whether a restart will still know it."""


@described
class AllocatedIdDocument:
    """An id that the broker beside this sidecar allocated to a producer, or that wrote to it."""

    user: str | None
    """The principal's name without "User:"; null: the id wrote, and its owner is not known here."""
    producer_id: Count
    """The id."""
    wrote: bool
    """Whether it is listed because it wrote, and not because it was allocated."""


@described
class AllocatedIdsDocument:
    """Some of the ids that the broker beside this sidecar allocated, for the other sidecars."""

    next: str
    """``after`` of the next request."""
    lost: Count
    """How many were requested too late."""
    ids: list[AllocatedIdDocument]
    """In the order in which they were allocated."""
