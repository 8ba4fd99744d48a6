"""GET /v1/relief: what is or would be deleted to make room, and the journal of deletions.

Example: the mode is "dry-run", /data of broker 3 needs room, and about 2 GB of "logs" would go.
"""

from typing import Annotated, Final

from fastapi import FastAPI
from pydantic import Field
from starlette.responses import Response

from sidecar.api.answers import answer, timestamp
from sidecar.api.documents import Time, described
from sidecar.relief.journal import Entry
from sidecar.relief.service import Relief

SHOWN: Final = 100
"""The most lines of the journal in an answer, the newest."""

KindName = Annotated[str, Field(json_schema_extra={"enum": ["begin", "end", "gain"]})]
ModeName = Annotated[str, Field(json_schema_extra={"enum": ["off", "dry-run", "delete"]})]


@described
class DeletionDocument:
    """Records of a partition."""

    topic: str
    """The topic."""
    partition: int
    """The partition's index."""
    from_offset: int
    """The first offset before the deletion."""
    to_offset: int
    """The offset up to which records are deleted, without it."""
    about_bytes: int
    """About how many bytes that is; Kafka does not report it."""
    first_offset: int | None
    """The first offset after the deletion; null before it, and if that is not known."""
    failure: str
    """Why the deletion was not confirmed; empty if it was, and before it."""


@described
class JournalDocument:
    """A line of the journal."""

    kind: KindName
    """begin: before a deletion. end: after it. gain: when its effect had to show."""
    step: str
    """The id of the step, the same in its lines."""
    at: Time
    """When it was written."""
    broker_id: int
    """The broker with the volume."""
    log_dir: str
    """The volume's log dir."""
    available_bytes: int
    """What the volume had available."""
    why: str
    """Why records were deleted."""
    deletions: list[DeletionDocument]
    """The partitions."""
    found: bool
    """Whether the outcome was read after a restart."""
    gained: bool | None
    """Whether the volume had more available than before; null in other lines."""


@described
class ReliefDocument:
    """What makes room on volumes."""

    mode: ModeName
    """off without SIDECAR_RELIEF_FILE; dry-run in observe mode, too."""
    acts: bool
    """Whether this sidecar is the one that acts."""
    why: str
    """Why records are deleted now, or why not."""
    is_short: bool
    """Whether a volume needs room and nothing may be deleted."""
    planned: list[DeletionDocument]
    """What is, or in a dry run would be, deleted next."""
    left_out: dict[str, str]
    """Topic -> why it is left out although it is declared."""
    failure: str
    """Why nothing can be read or noted; empty if it can."""
    journal: list[JournalDocument]
    """At most the last 100 lines, the newest first."""


def add_relief(app: FastAPI, relief: Relief | None) -> None:
    """Add the route."""

    @app.get(
        "/v1/relief",
        summary="What is deleted to make room, and the journal of deletions",
        responses={200: {"model": ReliefDocument}},
    )
    async def make_room() -> Response:
        """Only the sidecar that acts has a journal of its deletions."""
        return answer(_document(relief))


def _document(relief: Relief | None) -> ReliefDocument:
    if relief is None:
        return ReliefDocument("off", False, "no topics are declared", False, [], {}, "", [])
    planned = relief.planned
    return ReliefDocument(
        mode=relief.mode,
        acts=relief.is_first(),
        why=planned.why,
        is_short=planned.is_short,
        planned=[
            DeletionDocument(
                each.topic, each.index, each.start, each.to, each.about_bytes, None, ""
            )
            for each in planned.deletions
        ],
        left_out=dict(relief.left_out),
        failure=relief.failure or relief.file.problem,
        journal=[_line(entry) for entry in list(relief.journal.entries)[: -SHOWN - 1 : -1]],
    )


def _line(entry: Entry) -> JournalDocument:
    return JournalDocument(
        entry.kind,
        entry.step,
        timestamp(float, entry.at) or "",
        entry.broker_id,
        entry.log_dir,
        entry.available_bytes,
        entry.why,
        [
            DeletionDocument(
                each.topic,
                each.partition,
                each.from_offset,
                each.to_offset,
                each.about_bytes,
                each.first_offset,
                each.failure,
            )
            for each in entry.deletions
        ],
        entry.found,
        entry.gained,
    )
