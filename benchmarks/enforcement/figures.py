"""The figures of a scenario's runs, and what ours are to be beside the plugin's.

Example: 18 MB/s are stored until the limit is crossed at 100.0 s and nothing from 100.4 s on: the
producers are throttled 0.4 s after the crossing.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final

from benchmarks.enforcement.scene import BEFORE_S, Run
from benchmarks.harness.tables import Figures, Value, number, spread, table, values, whole
from benchmarks.harness.throttles import LEAK_RATIO, OURS, PAUSE_MAX_S, PEER

STOPPED: Final = "from crossing the limit to producers throttled"
PAST: Final = "past the limit on the fullest volume when throttled"
LONGEST: Final = "longest throttle time of a client"
LEAKED: Final = "let through while throttled, all brokers"
BACK: Final = "from space freed to 90 % of the earlier throughput"
FLOOD: Final = "most in a second of the 10 s after that, over before"
_MB: Final = 1e6
Target = tuple[str, bool | None]
"""What a figure of ours is to be, and whether it is; None: there is none of ours."""


def figures(run: Run) -> Figures:
    """The figures of a run whose limit was crossed.

    Raises:
        ValueError: it never was.
    """
    crossed, freed = run.crossed_at, run.freed_at
    if crossed is None:
        raise ValueError("the limit was never crossed")
    throttled, back, ended = run.throttled_at, run.back_at, run.ended_at
    before = run.acknowledged.rate(crossed - BEFORE_S, crossed)
    return {
        "before: acknowledged": Value(before / _MB, "MB/s"),
        STOPPED: Value(None if throttled is None else throttled - crossed, "s"),
        PAST: _past(run, throttled),
        "past the limit when space was freed": _past(run, freed),
        "after": Value(None if freed is None else freed - crossed, "s"),
        LONGEST: Value(run.longest_throttle_s, "s"),
        LEAKED: Value(_let_through(run), "kB/s"),
        BACK: _back(freed, back, ended),
        FLOOD: Value(None if back is None else _flood(run, back, ended) / before, "x"),
        "records that clients gave up": Value(run.failed_records, text=whole),
    }


def _past(run: Run, at: float | None) -> Value:
    past = None if at is None else (run.limit_bytes - run.available.at(at)) / _MB
    return Value(past, "MB")


def _let_through(run: Run) -> float | None:
    return sum(leak.bytes / leak.seconds for leak in run.leaks) / 1e3 if run.leaks else None


def _back(freed: float | None, back: float | None, ended: float) -> Value:
    if freed is None:
        return Value(None, "s")
    if back is not None:
        return Value(back - freed, "s")
    # Later rounds of the plugin are not watched at all, which shows nothing.
    watched = ended - freed
    return Value(watched if watched > 1.0 else None, "s", is_least=True)


def _flood(run: Run, back: float, ended: float) -> float:
    """The highest rate of a second within 10 s, bytes/s."""
    end = min(back + 10.0, ended)
    rates = run.acknowledged.window(back, end).rates(0.02, 1.0)
    return max((rate for _, rate in rates), default=run.acknowledged.rate(back, end))


def promise(run: Run) -> float | None:
    """The sum over brokers of max(leak budget, connections x bytes of a request / pause.max), kB/s.

    One request of each connection comes on top: a count that begins at any moment is off by that.
    """
    if run.crossed_at is None or not run.leaks:
        return None
    before = run.acknowledged.rate(run.crossed_at - BEFORE_S, run.crossed_at)
    budget, total = LEAK_RATIO * before / len(run.leaks), 0.0
    for leak in run.leaks:
        once = run.connections * leak.bytes / max(leak.requests, 1.0)
        total += max(budget, once / PAUSE_MAX_S) + once / leak.seconds
    return total / 1e3


def targets(
    peer: Sequence[Figures], ours: Sequence[Figures], promises: Sequence[float], poll_s: float
) -> dict[str, Target]:
    """What our figures are to be: a fifth of the plugin's, or a fixed bound.

    Args:
        peer: the plugin's, of each round; may be empty.
        ours: likewise.
        promises: what ours may let through in each round, kB/s.
        poll_s: how long after space is freed our sidecar may poll next, seconds.
    """
    most = {
        STOPPED: [value / 5 for value in _median(peer, STOPPED)],
        PAST: [value / 5 for value in _median(peer, PAST)],
        LONGEST: [PAUSE_MAX_S + 1.0],
        LEAKED: [median(promises)] if promises else [],
        FLOOD: [1.2],
    }
    found: dict[str, Target] = {}
    for name, (bound,) in ((name, bounds) for name, bounds in most.items() if bounds):
        own = _median(ours, name)
        unit = (*ours, *peer)[0][name].unit
        found[name] = (f"≤ {number(bound)} {unit}", own[0] <= bound if own else None)
    late = PAUSE_MAX_S + 2.0 + poll_s
    # One missed return is a miss, whatever the median is.
    came = [not (back := each[BACK]).is_least and (back.value or 0.0) <= late for each in ours]
    return found | {BACK: (f"≤ {number(late)} s", all(came) if ours else None)}


def _median(rounds: Sequence[Figures], name: str) -> list[float]:
    return [median(found)] if (found := values(rounds, name)) else []


def compare(goals: Mapping[str, Target], *arms: Sequence[Figures]) -> list[list[str]]:
    """Rows of a table: a figure, each arm's, what ours is to be, whether it is."""
    rows = []
    for name in next(of for of in arms if of)[0]:
        target, met = goals.get(name, ("", None))
        cells = [spread([each[name] for each in rounds]) for rounds in arms]
        rows.append([name, *cells, target, {None: "", True: "yes", False: "NO"}[met]])
    return rows


def comparison(rows: Sequence[Sequence[str]], names: Iterable[str] = (PEER.name, OURS.name)) -> str:
    """The rows as a table, with the names of the arms."""
    return table(["figure", *names, "to reach", "reached"], rows)
