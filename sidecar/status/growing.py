"""Who fills the volumes near or past a limit, or overfilled by a plan, as the status page shows it.

Example: "topic orders (partitions led here) grows by 6.2 MB/s, 71 % of the growth; written by etl",
and a table of the volume's parts, whose sizes add up to its used bytes.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.control.board import Snapshot
from sidecar.growth.watch import Growing
from sidecar.status.command import Command
from sidecar.status.inputs import StatusInputs
from sidecar.status.moments import Moment, Now
from sidecar.status.target import Target
from sidecar.throttle.growth import Kind, Partition, near_limit
from sidecar.throttle.sizes import duration_in_words, size

SHOWN: Final = 3
"""The volumes that the page shows, the worst first, and requests from their brokers."""

_LISTED: Final = 100
"""The most partitions that a command names."""

_REPEAT: Final = "Repeat this with what the page shows a minute later, until none are left."


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
    """A volume near or past a limit, or one that a plan overfills.

    Attributes:
        broker_id: the broker's node id.
        log_dir: the log dir's path.
        answered_at: when the broker reported it.
        used: its used bytes, the sum of its parts.
        growth: their growth; "" before a second reading.
        sentences: what grows most, whether a throttle stops it, and what is not known.
        parts: its parts.
        commands: the commands that slow or cancel what brings replicas there.
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
        inputs.contents.request(state.volume.broker_id)
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
            (*_of_reassignments(each, target), *_of_moves(each, target)),
        )


def not_stopped(inputs: StatusInputs, snapshot: Snapshot) -> str:
    """Say which volume a plan overfills, and which one a throttle does not stop; "" for none."""
    if inputs.growth is None or snapshot.rules.limit is None:
        return ""
    growing = list(inputs.growth.growing())
    overfilled = next((each.overfilled for each in growing if each.overfilled), "")
    sentences = [f"{overfilled}. The commands below slow that, or cancel it."] if overfilled else []
    for each in growing:
        if text := each.unthrottled:
            volume = each.state.volume
            of = f"{volume.log_dir} of broker {volume.broker_id}"
            sentences.append(f"On {of}: {text[0].lower()}{text[1:]}")
            break
    return " ".join(sentences)


def _sentences(volume: Growing) -> Iterator[str]:
    if text := volume.sentence:
        yield f"{text[0].upper()}{text[1:]}."
    if volume.unthrottled:
        yield volume.unthrottled
    arriving = volume.arriving
    if arriving.total_bytes:
        yield f"{arriving}. {_then(volume)}."
    if arriving.unknown:
        yield f"What {arriving.unknown} arriving partitions still lack is not known."
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


def _then(volume: Growing) -> str:
    left = volume.left_bytes
    if left < 0:
        return f"That is {size(-left)} more than the volume has left above its limit"
    lasts = duration_in_words(volume.seconds_left)
    at_growth = f", which last {lasts} at the growth of everything else" if lasts else ""
    return f"Then {size(left)} are left above its limit{at_growth}"


def _of_reassignments(volume: Growing, target: Target) -> Iterator[Command]:
    arriving, lacks = volume.split.placement.arriving, volume.arriving.replicas
    if not arriving or not (
        lacks or any(part.kind is Kind.REASSIGNMENT for part in volume.split.parts)
    ):
        return
    # A reassignment to the same brokers only changes its throttle.
    placed = {each: {"replicas": list(arriving[each])} for each in lacks or arriving}
    write, run, part = _plan(placed, lacks, "arriving.json", target)
    yield Command(
        "Slow the reassignment that brings replicas to this broker",
        (write, f"{run} --execute --additional --throttle 1000000"),
        "To 1 MB/s for each broker, or another number. If it was cancelled in the last 3 minutes, "
        "this begins it again. When it is complete, the second line with --verify alone in place "
        "of --execute and what follows takes the throttle away."
        f"{part and f'{part} The others stay as fast.'}",
    )
    yield Command(
        "Cancel it",
        (write, f"{run} --cancel --preserve-throttles"),
        "The partitions stay on their former brokers, and what arrived here is deleted. Without "
        "the last option, Kafka also takes the throttle away from all other moves. If Cruise "
        "Control runs the plan, stop it there first (with Strimzi: strimzi.io/rebalance=stop)."
        f"{part and f'{part} {_REPEAT}'}",
    )


def _of_moves(volume: Growing, target: Target) -> Iterator[Command]:
    lacks = volume.arriving.copies
    if not lacks:
        return
    broker_id, log_dir = volume.state.volume.place
    to = {"replicas": [broker_id], "log_dirs": [log_dir]}
    write, run, part = _plan(dict.fromkeys(lacks, to), lacks, "copies.json", target)
    rate = "replica.alter.log.dirs.io.max.bytes.per.second"
    configs = f"kafka-configs.sh {target.at} --alter --entity-type brokers --entity-name"
    yield Command(
        "Slow the copies from other log dirs of this broker",
        (f"{configs} {broker_id} --add-config {rate}=1000000",),
        f"To 1 MB/s together, or another number. Afterwards: --delete-config {rate}",
    )
    yield Command(
        "Cancel these copies",
        (write, f"{run} --cancel --preserve-throttles"),
        "The replicas stay where they are, and their copies here are deleted."
        f"{part and f'{part} {_REPEAT}'}",
    )


def _plan(
    placed: Mapping[Partition, Mapping[str, object]],
    lacks: Mapping[Partition, int],
    file: str,
    target: Target,
) -> tuple[str, str, str]:
    """The line that writes those that bring most into a file, and the start of what runs it.

    The last text is that these are not all; "" if they are.
    """
    listed = sorted(placed, key=lambda each: (-lacks.get(each, 0), each))[:_LISTED]
    plan = {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": index, **placed[topic, index]} for topic, index in listed
        ],
    }
    run = f"kafka-reassign-partitions.sh {target.at} --reassignment-json-file {file}"
    names = f" The file names {len(listed)} of {len(placed)} partitions, those that bring most."
    is_all = len(listed) == len(placed)
    return f"echo {shlex.quote(json.dumps(plan))} > {file}", run, "" if is_all else names
