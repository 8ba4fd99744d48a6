"""Figures of the two side by side, with what ours is to reach: one row of a table each.

Example: throttled after 1.5 s by the plugin and after 0.2 s by ours, a fifth of it at most:
``Comparison("from crossing the limit to producers throttled", "1.50 s", "0.20 s", "≤ 0.30 s",
True)``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.enforcement.contenders import PAUSE_MAX_S
from benchmarks.enforcement.figures import Figures

_SOONER: Final = 5.0
_FLOOD: Final = 1.2
_MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row.

    Attributes:
        figure: what was measured.
        peer: the plugin's, written out; "" where there is none.
        ours: likewise.
        target: what ours is to be.
        met: whether it is; None where nothing is to be reached.
    """

    figure: str
    peer: str
    ours: str
    target: str = ""
    met: bool | None = None


def compare(
    peer: Sequence[Figures], ours: Sequence[Figures], poll_s: float
) -> Iterable[Comparison]:
    """The rows of one scenario.

    Args:
        peer: the plugin's, of each round; may be empty.
        ours: likewise.
        poll_s: how long after space is freed our sidecar may poll next, seconds.
    """

    def row(
        figure: str, get: Callable[[Figures], float | None], unit: str, most: float | None = None
    ) -> Comparison:
        theirs, own = _values(peer, get), _values(ours, get)
        met = None if most is None or not own else median(own) <= most
        target = "" if most is None else f"≤ {number(most)} {unit}"
        return Comparison(figure, _text(theirs, unit), _text(own, unit), target, met)

    def fifth(get: Callable[[Figures], float | None]) -> float | None:
        found = _values(peer, get)
        return median(found) / _SOONER if found else None

    yield row("before: acknowledged", lambda each: each.before / _MB, "MB/s")
    yield row("from crossing the limit to producers throttled", _throttled, "s", fifth(_throttled))
    yield row("past the limit on the fullest volume when throttled", _past, "MB", fifth(_past))
    yield row("past the limit when space was freed", _past_freed, "MB")
    yield row("after", lambda each: each.throttled_s, "s")
    yield row(
        "longest throttle time of a client",
        lambda each: each.longest_throttle_s,
        "s",
        PAUSE_MAX_S + 1.0,
    )
    promise = _values(ours, lambda each: each.promise)
    yield row(
        "let through while throttled, all brokers",
        lambda each: None if each.let_through is None else each.let_through / 1e3,
        "kB/s",
        median(promise) / 1e3 if promise else None,
    )
    yield _back(peer, ours, PAUSE_MAX_S + 2.0 + poll_s)
    yield row("most in a second of the 10 s after that, over before", _flood, "x", _FLOOD)
    yield row("records that clients gave up", lambda each: each.failed_records, "")


def as_table(rows: Iterable[Comparison], peer: str, ours: str) -> str:
    """The rows as a Markdown table."""
    cells = [("figure", peer, ours, "to reach", "reached")]
    cells += [
        (row.figure, row.peer, row.ours, row.target, {None: "", True: "yes", False: "NO"}[row.met])
        for row in rows
    ]
    lines = ["| " + " | ".join(each) + " |" for each in cells]
    return "\n".join([lines[0], "|---|---|---|---|---|", *lines[1:]])


def number(value: float) -> str:
    """Three significant figures, no exponent: 0.26, 12.3, 2,062,146."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}"


def _back(peer: Sequence[Figures], ours: Sequence[Figures], most: float) -> Comparison:
    met = all(each.back_s is not None and each.back_s <= most for each in ours) if ours else None
    name = "from space freed to 90 % of the earlier throughput"
    return Comparison(name, _waited(peer), _waited(ours), f"≤ {number(most)} s", met)


def _waited(found: Sequence[Figures]) -> str:
    """How long it took; where it was not seen, for how long it was watched."""
    seen = [each.back_s for each in found if each.back_s is not None]
    # Those that were not waited for at all say nothing.
    watched = [each.watched_s or 0.0 for each in found if each.back_s is None]
    unseen = [seconds for seconds in watched if seconds > 1.0]
    parts = [_text(seen, "s")] if seen else []
    parts += [f"> {number(max(unseen))} s"] if unseen else []
    return ", ".join(parts)


def _text(values: Sequence[float], unit: str) -> str:
    """The median; and the lowest and the highest, where there are several."""
    if not values:
        return ""
    text = f"{number(median(values))} {unit}".rstrip()
    if len(values) > 1:
        text += f" ({number(min(values))} to {number(max(values))})"
    return text


def _values(found: Sequence[Figures], get: Callable[[Figures], float | None]) -> list[float]:
    return [value for each in found if (value := get(each)) is not None]


def _throttled(each: Figures) -> float | None:
    return each.stopped_s


def _past(each: Figures) -> float | None:
    return None if each.past_at_throttled is None else each.past_at_throttled / _MB


def _past_freed(each: Figures) -> float | None:
    return None if each.past_at_freed is None else each.past_at_freed / _MB


def _flood(each: Figures) -> float | None:
    return each.flood
