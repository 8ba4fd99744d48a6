"""The table and the picture out of a folder of results.

In the folder: ``CONTENDER.ROUND.json`` for each course, ``load.json``, ``machine.json``. A
contender that was not measured is left out, so that one can be read alone.

Example: three rounds that took 0.8, 0.9 and 1.2 s are "900 ms (800 ms to 1.20 s)".
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.mutations.course import Course
from benchmarks.mutations.figures import LEAST_SLOWER_S, SLOWER, Figures, Waits, figures
from benchmarks.mutations.others import EVERY_S
from benchmarks.mutations.pictures import picture
from benchmarks.mutations.scene import CONTENDERS
from benchmarks.mutations.storm import Load
from kafka_lab.jars import DEFAULT_VERSION

TITLE: Final = "Another's new topic during a storm of new topics"
_HEAD: Final = """\
# Controller mutations, measured

Written by `make bench-mutations`; do not edit. It is the experiment that KIP-599 begins with, on
KRaft: a dedicated controller and three brokers (Kafka {version}) on one machine with all clients.

- The storm: {topics} topics of {partitions} partitions with {replication} replicas in a request,
  {per_s:g} requests a second, {total:,} topics in all. It sends at this pace for {seconds:g} s
  whatever the throttle time, and repeats what was rejected.
- The others: every {every_ms:g} ms another user creates a topic of one partition and sends a record
  to it. "Answered" is the controller's answer: the topic is written down. "First record" is when
  the topic can be used: its leader has acknowledged a record, so it has caught up with what the
  controller wrote before.
- No quota; Kafka's quota: a controller_mutation_rate of {rate:g} for the storm's user, so a burst
  of {burst:g} partitions; admission endpoint: the storm asks one sidecar before each request, for a
  user with that quota, and sends only what is admitted, as a user without one. The sidecars run
  beside the brokers in all three.
- Longer than before: more than {slower:g} times the median before the storm, and more than
  {least_ms:g} ms. "> 60 s": it was not over in that time.
"""

Get = Callable[[Figures], float | None]


def report(folder: Path, out: Path) -> str:
    """Write the picture and the page beside each other; the page's text.

    Args:
        folder: with the results.
        out: the page, a Markdown file; the picture goes beside it.
    """
    parts = [_head(Load(**json.loads((folder / "load.json").read_text(encoding="utf-8"))))]
    lines = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
    parts.append("\n".join(f"- {line}" for line in lines) + "\n")
    courses = {
        each.key: [Course.load(file) for file in sorted(folder.glob(f"{each.key}.*.json"))]
        for each in CONTENDERS
    }
    courses = {key: found for key, found in courses.items() if found}
    names = {each.key: each.name for each in CONTENDERS}
    if courses:
        found = {names[key]: [figures(each) for each in of] for key, of in courses.items()}
        parts.append(_summary(found) + "\n")
        parts.append(as_table(found) + "\n")
        image = out.with_suffix(".svg")
        firsts = [of[0] for of in courses.values()]
        image.write_text(picture(TITLE, firsts, names), encoding="utf-8")
        parts.append(f"![{TITLE}]({image.name})\n")
    notes = [
        f"- {names[key]}: {note}"
        for key, of in courses.items()
        for each in of
        for note in each.notes
    ]
    if notes:
        parts.append("\n".join(notes) + "\n")
    page = "\n".join(parts)
    out.write_text(page, encoding="utf-8")
    return page


def as_table(found: Mapping[str, Sequence[Figures]]) -> str:
    """A Markdown table: a column for each contender, by its name."""
    head = ["figure", *found]
    rows = [[name, *(cell(rounds) for rounds in found.values())] for name, cell in _rows()]
    lines = ["| " + " | ".join(each) + " |" for each in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines)


def _summary(found: Mapping[str, Sequence[Figures]]) -> str:
    cell = _longest(lambda each: each.record)
    waits = ", ".join(f"{name} {cell(rounds)}" for name, rounds in found.items())
    return f"The longest that another user waited until the new topic could be used: {waits}."


def seconds(value: float) -> str:
    """For people: 49 ms, 2.31 s, 23.1 s."""
    if value < 0.9995:
        return f"{1000 * value:.0f} ms"
    return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"


def _rows() -> Iterator[tuple[str, Callable[[Sequence[Figures]], str]]]:
    def timed(get: Get) -> Callable[[Sequence[Figures]], str]:
        return lambda rounds: _spread(rounds, get, seconds)

    def counted(get: Get) -> Callable[[Sequence[Figures]], str]:
        return lambda rounds: _spread(rounds, get, lambda value: f"{value:,.0f}")

    yield "others before the storm: answered, median", timed(lambda each: each.answer.before)
    yield "others before the storm: first record, median", timed(lambda each: each.record.before)
    yield "others in its time: answered, median", timed(lambda each: each.answer.during)
    yield "others from then on: answered, longest", _longest(lambda each: each.answer)
    yield "others in its time: first record, median", timed(lambda each: each.record.during)
    yield "others from then on: first record, longest", _longest(lambda each: each.record)
    yield (
        "the last whose first record took longer than before came, from its beginning",
        timed(lambda each: each.over_s),
    )
    yield "others' operations that failed", counted(lambda each: each.failed)
    yield "the storm: requests that reached Kafka", counted(lambda each: each.sent)
    yield "the storm: topics created", counted(lambda each: each.created)
    yield "the storm: topics rejected by Kafka, each time", counted(lambda each: each.rejected)
    yield (
        "the storm: topics rejected by the endpoint, each time",
        counted(lambda each: each.kept),
    )
    yield "the storm: answered by Kafka, median", timed(lambda each: each.own_s)
    yield "the storm: answered by the endpoint alone, median", timed(lambda each: each.asking_s)
    yield "the storm: requests that failed", counted(lambda each: each.errors)


def _longest(get: Callable[[Figures], Waits]) -> Callable[[Sequence[Figures]], str]:
    def cell(rounds: Sequence[Figures]) -> str:
        text = _spread(rounds, lambda each: get(each).longest, seconds)
        return f"> {text}" if any(get(each).unseen for each in rounds) else text

    return cell


def _spread(rounds: Sequence[Figures], get: Get, text: Callable[[float], str]) -> str:
    values = [value for each in rounds if (value := get(each)) is not None]
    if not values:
        return "none"
    reported = text(median(values))
    return (
        reported if len(values) == 1 else f"{reported} ({text(min(values))} to {text(max(values))})"
    )


def _head(load: Load) -> str:
    return _HEAD.format(
        version=DEFAULT_VERSION,
        topics=load.topics,
        partitions=load.partitions,
        replication=load.replication,
        per_s=load.per_s,
        total=load.requests * load.topics,
        seconds=load.seconds,
        every_ms=1000 * EVERY_S,
        rate=load.rate,
        burst=11 * load.rate,
        slower=SLOWER,
        least_ms=1000 * LEAST_SLOWER_S,
    )
