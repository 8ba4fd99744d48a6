"""GET /v1/growth: who fills the volumes near or past a limit, or overfilled by a plan.

Example: /data of broker 3 grows by 8.7 MB/s, of which the topic "orders" has 6.2 MB/s, written by
etl. The list is empty while no volume is near its limit.
"""

from collections.abc import Iterator
from typing import Annotated

from fastapi import FastAPI
from pydantic import Field
from starlette.responses import Response

from sidecar.api.answers import Wall, answer_listing, rounded, timestamp
from sidecar.api.documents import Time, described
from sidecar.growth.watch import Growing, GrowthWatch
from sidecar.throttle.growth import Kind, Part

KindName = Annotated[str, Field(json_schema_extra={"enum": [*Kind]})]


@described
class WriterDocument:
    """A user who writes to a topic, by the request log of the broker."""

    user: str
    """The principal's name without "User:"."""
    bytes_per_second: float
    """What the user writes to partitions that the broker leads."""


@described
class PartDocument:
    """A part of a volume."""

    kind: KindName
    """leader: partitions that the broker leads. replica: replicas of others. topic: partitions
    whose leader could not be read. reassignment: replicas that one adds. log_dir_move: copies from
    another log dir. other_topics: topics without a part of their own. reserve: the broker's
    reserve, if its quota callback reports it here. no_partition: files of others, indexes, the
    metadata log of KRaft, stray partitions, and deleted segments until the broker has removed
    them."""
    topic: str | None
    """The topic; null for several topics or none."""
    size_bytes: int
    """Its size. It is negative for no_partition if partitions are larger than what is used."""
    growth_bytes_per_second: float | None
    """Its growth since the reading before; null after the first reading."""
    share_of_growth: Annotated[float, Field(ge=0, le=1)]
    """Its share in the growth of all parts that grow. Of no_partition, at most what the other parts
    leave of the volume's growth counts, since deleted segments are no growth."""
    writers: list[WriterDocument]
    """The users who write most to the topic; empty if that is not known."""


@described
class GrowingVolumeDocument:
    """A volume that is near or past a limit, or that a plan overfills, in parts."""

    broker_id: int
    """The broker's node id."""
    log_dir: str
    """The log dir's path on the broker."""
    answered_at: Time
    """When the broker reported it."""
    used_bytes: int
    """The used bytes, the sum of the sizes of all parts."""
    growth_bytes_per_second: float | None
    """Their growth since the reading before, the sum of all parts' growths; null after the first
    reading."""
    seconds: Annotated[float, Field(ge=0)] | None
    """The time between the two readings."""
    reassignments_known: bool
    """Whether reassignments could be read; otherwise their replicas count as the topic's."""
    sentence: str
    """What grows most, in words; empty after the first reading."""
    unthrottled: str
    """Why a throttle of producers does not stop the growth; empty if it does, or is not known."""
    arriving_bytes: int
    """What reassignments and log-dir moves still bring, as far as that is known."""
    arriving_unknown: int | None
    """The partitions that arrive and may lack more, since their sizes are not known; null if
    reassignments could not be read."""
    headroom_after_arrivals_bytes: int
    """What is left above the limit when that has arrived; negative if not all of it fits."""
    seconds_to_limit: Annotated[float, Field(ge=0)] | None
    """How long that lasts at the growth of everything else; null if that is more than ten
    years, or not known."""
    overfilled: str
    """What arrives although it does not fit; empty if it fits, or if that is not known."""
    parts: list[PartDocument]
    """At most ten topics, and the others as one part of each kind; no_partition is last."""


@described
class GrowthDocument:
    """The volumes of this kind whose parts this sidecar knows: overfilled ones, then the worst."""

    volumes: list[GrowingVolumeDocument]
    """The volumes."""


def add_growth(app: FastAPI, watch: GrowthWatch | None, wall: Wall) -> None:
    """Add the route."""

    @app.get(
        "/v1/growth",
        summary="Who fills the volumes near or past a limit, or overfilled by a plan",
        responses={200: {"model": GrowthDocument}},
    )
    async def growth() -> Response:
        """A sidecar beside a broker knows its own, and those that its status page shows."""
        found = () if watch is None else list(watch.growing())
        return answer_listing({}, "volumes", (_document(each, wall) for each in found))


def _document(volume: Growing, wall: Wall) -> GrowingVolumeDocument:
    split = volume.split
    return GrowingVolumeDocument(
        broker_id=volume.state.volume.broker_id,
        log_dir=volume.state.volume.log_dir,
        answered_at=timestamp(wall, volume.answered_at) or "",
        used_bytes=split.used_bytes,
        growth_bytes_per_second=rounded(split.bytes_per_second, 1),
        seconds=rounded(split.seconds, 3),
        reassignments_known=split.placement.arriving is not None,
        sentence=volume.sentence,
        unthrottled=volume.unthrottled,
        arriving_bytes=volume.arriving.total_bytes,
        arriving_unknown=volume.arriving.unknown,
        headroom_after_arrivals_bytes=int(volume.left_bytes),
        seconds_to_limit=rounded(volume.seconds_left, 1),
        overfilled=volume.overfilled,
        parts=list(_parts(volume)),
    )


def _parts(volume: Growing) -> Iterator[PartDocument]:
    for part in volume.split.parts:
        yield PartDocument(
            kind=part.kind,
            topic=part.topic or None,
            size_bytes=part.size_bytes,
            growth_bytes_per_second=rounded(volume.split.rate(part.growth_bytes), 1),
            share_of_growth=round(volume.split.share(part), 4),
            writers=_writers(part, volume),
        )


def _writers(part: Part, volume: Growing) -> list[WriterDocument]:
    # A replica's writers are in the request log of the leader's broker.
    if part.kind not in {Kind.LEADER, Kind.TOPIC}:
        return []
    users = volume.writers.get(part.topic, {})
    return [WriterDocument(user, round(rate, 1)) for user, rate in users.items()]
