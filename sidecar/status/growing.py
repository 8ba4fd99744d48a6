"""Who fills the volumes near or past a limit, as the status page shows it.

Example: "topic orders (partitions led here) grows by 6.2 MB/s, 71 % of the growth; written by etl",
and a table of the volume's parts, whose sizes add up to its used bytes.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sidecar.control.board import Snapshot
from sidecar.growth.watch import Growing
from sidecar.status.command import Command
from sidecar.status.inputs import StatusInputs
from sidecar.status.moments import Moment, Now
from sidecar.status.target import Target
from sidecar.throttle.growth import Kind, Split, near_limit
from sidecar.throttle.sizes import size

SHOWN: Final = 3
"""The volumes that the page shows, the worst first, and requests from their brokers."""

_LISTED: Final = 100
"""The most partitions that a command names."""


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part of a volume.

    Attributes:
        what: what it is.
        size: its size.
        growth: its growth with a sign; "" before a second reading.
        writers: the users who write to it; "" if they are not known.
    """

    what: str
    size: str
    growth: str
    writers: str


@dataclass(frozen=True, slots=True)
class GrowingRow:
    """A volume near or past a limit.

    Attributes:
        broker_id: the broker's node id.
        log_dir: the log dir's path.
        answered_at: when the broker reported it.
        used: its used bytes, the sum of its parts.
        growth: their growth; "" before a second reading.
        sentences: what grows most, whether a throttle stops it, and what is not known.
        parts: its parts.
        commands: the commands that slow or cancel a reassignment that brings replicas there.
    """

    broker_id: int
    log_dir: str
    answered_at: Moment
    used: str
    growth: str
    sentences: tuple[str, ...]
    parts: tuple[PartRow, ...]
    commands: tuple[Command, ...]


def growing_rows(inputs: StatusInputs, now: Now) -> Iterator[GrowingRow]:
    """Yield the worst volumes whose parts are known, and request those of their brokers."""
    if inputs.growth is None or inputs.contents is None:
        return
    snapshot = inputs.board.snapshot
    for state in near_limit(snapshot.memory, snapshot.rules)[:SHOWN]:
        inputs.contents.of(state.volume.broker_id)
    target = Target.of(snapshot.memory, inputs.tools)
    for each in list(inputs.growth.growing())[:SHOWN]:
        split = each.split
        yield GrowingRow(
            each.state.volume.broker_id,
            each.state.volume.log_dir,
            now.moment(each.answered_at),
            size(split.used_bytes),
            _signed(split.bytes_per_second),
            tuple(_sentences(each)),
            tuple(_parts(each)),
            tuple(_commands(split, target)),
        )


def not_stopped(inputs: StatusInputs, snapshot: Snapshot) -> str:
    """Say which volume fills although a throttle of producers does not stop it; "" for none."""
    if inputs.growth is None or snapshot.rules.limit is None:
        return ""
    for each in inputs.growth.growing():
        if text := each.unthrottled:
            volume = each.state.volume
            of = f"{volume.log_dir} of broker {volume.broker_id}"
            return f"On {of}: {text[0].lower()}{text[1:]}"
    return ""


def _sentences(volume: Growing) -> Iterator[str]:
    if text := volume.sentence:
        yield f"{text[0].upper()}{text[1:]}."
    if volume.unthrottled:
        yield volume.unthrottled
    if volume.split.placement.arriving is None:
        yield "Reassignments could not be read: replicas that one adds count as their topic's."
    if volume.split.seconds is None:
        yield "What grows is known after a second reading, a minute after the first."


def _parts(volume: Growing) -> Iterator[PartRow]:
    for part in volume.split.parts:
        is_led = part.kind in {Kind.LEADER, Kind.TOPIC}
        users = volume.writers.get(part.topic, {}) if is_led else {}
        yield PartRow(
            str(part),
            size(part.size_bytes),
            _signed(volume.split.rate(part.growth_bytes)),
            ", ".join(f"{user} {size(by)}/s" for user, by in users.items()),
        )


def _signed(by: float | None) -> str:
    if by is None:
        return ""
    return "0" if abs(by) < 1.0 else f"{'+' if by > 0 else '-'}{size(abs(by))}/s"


def _commands(split: Split, target: Target) -> Iterator[Command]:
    arriving = split.placement.arriving
    if not arriving or all(part.kind is not Kind.REASSIGNMENT for part in split.parts):
        return
    # A reassignment to the same brokers only changes its throttle.
    plan = json.dumps(
        {
            "version": 1,
            "partitions": [
                {"topic": topic, "partition": index, "replicas": list(brokers)}
                for (topic, index), brokers in sorted(arriving.items())[:_LISTED]
            ],
        }
    )
    write = f"echo {shlex.quote(plan)} > arriving.json"
    run = f"kafka-reassign-partitions.sh {target.at} --reassignment-json-file arriving.json"
    yield Command(
        "Slow the reassignment that brings replicas to this broker",
        (write, f"{run} --execute --additional --throttle 1000000"),
        "To 1 MB/s for each broker, or another number. When it is complete, the second line with "
        "--verify alone in place of --execute and what follows takes the throttle away.",
    )
    yield Command(
        "Cancel it",
        (write, f"{run} --cancel"),
        "The partitions stay on their former brokers, and what arrived here is deleted.",
    )
