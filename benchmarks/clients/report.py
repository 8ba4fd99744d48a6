"""The tables of docs/clients.md out of a folder of results; the page's other words stay.

In the folder: ``CLIENT.ARM.PART.SECONDS.json`` for each course, and ``machine.PART.json``. What
was not measured is left out.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.clients.arms import ARMS, WITHOUT
from benchmarks.clients.clients import CLIENTS
from benchmarks.clients.course import Course
from benchmarks.clients.figures import Figures, figures
from benchmarks.clients.goals import NAMES, verdicts
from benchmarks.clients.parts import PARTS

BEGIN: Final = '<!-- made by "make bench-clients" -->\n'
END: Final = "<!-- end -->"
_HEADER: Final = (
    "client",
    "kB/s before",
    "kB/s landed: least to most (mean)",
    "first error",
    "records lost, from",
    "failed, yet landed",
    "twice",
    "out of order",
    "sent for nothing, MB; connections",
    "refused",
    "back to 90 %",
    "most in a second of the 10 s after it, over before",
)
_GOALS: Final = ("client", *NAMES)
_ERROR_CHARACTERS: Final = 60


def report(folder: Path, out: Path) -> str:
    """Put the tables where the page has its two comments; the page's text.

    Args:
        folder: with the results.
        out: the page, a Markdown file; one with nothing but the tables if it is not there.
    """
    page = out.read_text(encoding="utf-8") if out.is_file() else f"# Clients\n\n{BEGIN}{END}\n"
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{out} has no place for the tables: {BEGIN}{END}")
    page = "".join([head, begin, "\n", "\n".join(_tables(folder)), end, tail])
    out.write_text(page, encoding="utf-8")
    return page


def row(name: str, found: Figures) -> list[str]:
    """A client's cells."""
    rates = f"{_kb(found.least)} to {_kb(found.most)} ({_kb(found.mean)})"
    back = f"> {found.watched_s:.0f} s" if found.back_s is None else f"{found.back_s:.1f} s"
    return [
        name,
        _kb(found.before),
        rates,
        _error(found),
        _lost(found),
        _count(found.failed_but_landed),
        _count(found.twice),
        _count(found.disordered),
        f"{found.for_nothing / 1e6:.1f}; {found.connections}",
        "" if found.refused is None else _count(found.refused),
        back,
        _peak(found),
    ]


def _tables(folder: Path) -> Iterator[str]:
    courses = [Course.load(file) for file in folder.glob("*.*.*.*.json")]
    for part in PARTS:
        mine = [each for each in courses if each.part == part.key]
        for throttle_s in sorted({each.throttle_s for each in mine}):
            title = f"a throttle of {_duration(throttle_s)}"
            title += ", seven clients at once" if part.is_shared else ""
            yield from _throttle(title, [each for each in mine if each.throttle_s == throttle_s])
        machine = folder / f"machine.{part.key}.json"
        if mine and machine.is_file():
            lines = json.loads(machine.read_text(encoding="utf-8"))
            yield "Measured on:\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"


def _throttle(title: str, courses: Sequence[Course]) -> Iterator[str]:
    """The tables of one throttle, by what throttled."""
    found = {(each.arm, each.client): figures(each) for each in courses}
    for arm in ARMS.values():
        clients = [each for each in CLIENTS if (arm.key, each.key) in found]
        if not clients:
            continue
        yield f"### {arm.title}, {title}\n"
        rows = [row(each.name, found[arm.key, each.key]) for each in clients]
        yield f"{_table(_HEADER, rows)}\n"
        if arm.is_ours:
            goals = []
            for each in clients:
                without = found.get((WITHOUT, each.key))
                reached = verdicts(each, arm.key, found[arm.key, each.key], without)
                goals.append([each.name, *map(str, reached)])
            yield f"Whether each goal was reached:\n\n{_table(_GOALS, goals)}\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(each) + " |" for each in (header, *rows)]
    lines.insert(1, "|" + "---|" * len(header))
    return "\n".join(lines)


def _error(found: Figures) -> str:
    if found.first_error_s is None:
        return "none"
    text = " ".join(found.first_error.replace("|", "/").split())
    short = text if len(text) <= _ERROR_CHARACTERS else f"{text[:_ERROR_CHARACTERS]}..."
    return f"{found.first_error_s:.0f} s: {short}"


def _lost(found: Figures) -> str:
    if found.lost is None:
        text = "none"
    else:
        text = f"{found.lost.records:,} from {found.lost.first_s:.0f} s"
        if found.lost.acknowledged:
            text += f", {found.lost.acknowledged:,} of them acknowledged"
    return text + (f"; {found.unreported:,} not reported" if found.unreported else "")


def _peak(found: Figures) -> str:
    if found.before <= 0.0:
        return ""
    return f"{found.peak / found.before:.2f} x after {found.peak_s:.1f} s"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 else f"{seconds:g} s"


def _kb(rate: float) -> str:
    return f"{rate / 1000:,.0f}"


def _count(number: int) -> str:
    return f"{number:,}"
