"""The page and its pictures out of a folder of results.

In the folder: ``BROKERS.VARIANT.ROUND.json`` for each course, and ``machine.json``. What is missing
is left out, so a part can be read before all is measured.
"""

import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.enforcement.comparison import number
from benchmarks.producer_ids.course import Course
from benchmarks.producer_ids.figures import Figures, figures
from benchmarks.producer_ids.pictures import picture
from benchmarks.producer_ids.scene import BATCH_BYTES, CLIENTS, NEIGHBOUR_BYTES_PER_S, SETTLE_S
from benchmarks.producer_ids.variants import (
    IP_RATE,
    PERCENTAGE,
    RATE,
    VARIANTS,
    WINDOW_S,
    WINDOWS,
    Variant,
)
from kafka_lab.versions import DEFAULT_VERSION

Rounds = dict[str, list[Course]]
"""Variant's key -> its courses on clusters alike."""

_HEAD: Final = f"""\
# A user who opens producer ids in a loop, measured

Written by `make bench-producer-ids`; do not edit. {CLIENTS} clients of one user (librdkafka) each
connect, get a producer id, send one batch of {BATCH_BYTES // 1000} kB and disconnect, again and
again, on Kafka {DEFAULT_VERSION} with the quota callback and a sidecar beside each broker. A
neighbour produces {NEIGHBOUR_BYTES_PER_S / 1e6:g} MB/s meanwhile. The user's quota is a
`producer_ids_rate` of {RATE} in a window of {WINDOW_S} s, {RATE * WINDOWS} at once. The figures are
of the time from {SETTLE_S:g} s after the clients' beginning.

- free: the user has no quota.
- factor: throttled by the produce factor 0.0 alone.
- percentage: throttled by a `throttled_request_percentage` of {PERCENTAGE} alone: the callback
  leaves that user out.
- both: as a user with a `throttled_request_percentage` is throttled.
- both + IP rate: and the address of all clients has a Kafka quota `connection_creation_rate` of
  {IP_RATE:g}, which an operator sets: sidecars don't.

The request log is at DEBUG in all of them, also where nobody is throttled.
Ids count here when they are allocated (`SIDECAR_PRODUCER_ID_QUOTA_COUNTS=allocated`). Where they
count when they write, which is the default, a throttle begins up to 2 s later
(`SIDECAR_PRODUCER_ID_QUOTA_ACTIVE_INTERVAL`); each of these clients writes, so its effect is the
same.

"""
_LIMITS: Final = """\
What was measured here is promised, and no more. Ids become fewer, not none: Kafka allocates an id
and appends a batch before it throttles the client, it bounds a request quota's wait by one quota
window of a second, and each broker throttles only its own connections. The factor lets its leak
budget through, a hundredth of what all clients produced: here some tens of kB/s, so that it would
not even slow batches of a few bytes."""
_WIDTH: Final = 100
_ROWS: Final[tuple[tuple[str, Callable[[Figures], float | None], str], ...]] = (
    ("throttled by every sidecar, after the first id too many", lambda each: each.stopped_s, "s"),
    ("ids that brokers allocated, a second", lambda each: each.allocated, ""),
    ("ids that were used and are retained, a second", lambda each: each.produced, ""),
    ("retained after a day of it (computed)", lambda each: each.a_day, ""),
    ("longest throttle time with an id", lambda each: each.init_ms, "ms"),
    ("longest throttle time with a batch", lambda each: each.produce_ms, "ms"),
    ("the neighbour", lambda each: each.neighbour / 1e6, "MB/s"),
    ("the neighbour's slowest second", lambda each: each.neighbour_least / 1e6, "MB/s"),
    ("longest throttle time of the neighbour", lambda each: each.neighbour_ms, "ms"),
)


def report(folder: Path, out: Path) -> str:
    """Write the pictures and the page beside each other; the page's text.

    Args:
        folder: with the results.
        out: the page, a Markdown file; pictures go beside it.
    """
    parts = [_HEAD]
    machine = folder / "machine.json"
    if machine.is_file():
        lines = json.loads(machine.read_text(encoding="utf-8"))
        parts.append("\n".join(f"- {line}" for line in lines) + "\n\n")
    found = _courses(folder)
    parts.extend(_promise(found))
    for brokers, rounds in found.items():
        title = "1 broker" if brokers == 1 else f"{brokers} brokers"
        image = out.with_name(f"{out.stem}-{brokers}.svg")
        # The first rounds: what is drawn did happen.
        image.write_text(picture(title, [each[0] for each in rounds.values()]), encoding="utf-8")
        parts.append(f"## {title}\n\n{table(rounds)}\n\n![{title}]({image.name})\n\n")
    page = "".join(parts).rstrip() + "\n"
    out.write_text(page, encoding="utf-8")
    return page


def table(rounds: Rounds) -> str:
    """One column for each variant, as Markdown."""
    names = [_variant(key).name for key in rounds]
    reported = [[figures(course) for course in each] for each in rounds.values()]
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for what, get, unit in _ROWS:
        cells = [_text([get(each) for each in found], unit) for found in reported]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _promise(found: dict[int, Rounds]) -> Iterator[str]:
    """What was measured is what is promised."""
    lines = [line for brokers, rounds in found.items() for line in _compared(brokers, rounds)]
    if lines:
        yield "## What is promised\n\n"
        yield _LIMITS + "\n\n"
        for line in lines:
            yield textwrap.fill(f"- {line}", _WIDTH, subsequent_indent="  ") + "\n"
        yield "\n"


def _compared(brokers: int, rounds: Rounds) -> Iterator[str]:
    where = "on 1 broker" if brokers == 1 else f"on {brokers} brokers"
    ids = {key: median(figures(course).produced for course in each) for key, each in rounds.items()}
    free = ids.pop("none", None)
    for key, value in ids.items():
        if free is not None:
            each = f"one in {number(CLIENTS / value)} s" if value > 0 else "none"
            yield (
                f"{_variant(key).name}, {where}: {number(value)} ids a second where "
                f"{number(free)} came without a throttle; of each client {each}."
            )


def _courses(folder: Path) -> dict[int, Rounds]:
    found: dict[int, Rounds] = {}
    for variant in VARIANTS:
        for file in sorted(folder.glob(f"*.{variant.key}.*.json")):
            course = Course.load(file)
            found.setdefault(course.brokers, {}).setdefault(variant.key, []).append(course)
    return dict(sorted(found.items()))


def _text(values: Sequence[float | None], unit: str) -> str:
    """The median; and the lowest and the highest, where there are several."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    reported = _whole if unit == "ms" else number
    text = f"{reported(median(known))} {unit}".rstrip()
    if len(known) > 1:
        text += f" ({reported(min(known))} to {reported(max(known))})"
    return text


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _variant(key: str) -> Variant:
    return next(each for each in VARIANTS if each.key == key)
