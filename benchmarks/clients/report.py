"""The tables of docs/clients.md out of a folder of results; the page's other words stay.

In the folder: ``CLIENT.ARM.SECONDS.json`` for each course, and ``machine.json``. What was not
measured is left out.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.clients.clients import CLIENTS
from benchmarks.clients.course import Course
from benchmarks.clients.figures import Figures, figures

BEGIN: Final = '<!-- made by "make bench-clients" -->\n'
END: Final = "<!-- end -->"
_ARMS: Final = {"callback": "The callback alone", "authorizer": "With the authorizer"}
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
    "back to 90 %",
)
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
        back,
    ]


def _tables(folder: Path) -> Iterator[str]:
    courses = [Course.load(file) for file in folder.glob("*.*.*.json")]
    order = {client.key: index for index, client in enumerate(CLIENTS)}
    names = {client.key: client.name for client in CLIENTS}
    for throttle_s in sorted({each.throttle_s for each in courses}):
        for arm, title in _ARMS.items():
            group = [each for each in courses if (each.arm, each.throttle_s) == (arm, throttle_s)]
            if group:
                group.sort(key=lambda each: order[each.client])
                rows = [row(names[each.client], figures(each)) for each in group]
                yield f"### {title}, a throttle of {_duration(throttle_s)}\n\n{_table(rows)}\n"
    machine = folder / "machine.json"
    if machine.is_file():
        lines = json.loads(machine.read_text(encoding="utf-8"))
        yield "Measured on:\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(each) + " |" for each in (_HEADER, *rows)]
    lines.insert(1, "|" + "---|" * len(_HEADER))
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


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 else f"{seconds:g} s"


def _kb(rate: float) -> str:
    return f"{rate / 1000:,.0f}"


def _count(number: int) -> str:
    return f"{number:,}"
