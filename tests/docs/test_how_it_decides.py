"""The tables of docs/how-it-decides.md, run through the deciding code."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.fold import fail
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Release, Timing, next_poll
from sidecar.volumes import Failure, FailureKind, Observation, Volume
from tests.docs.markdown import Table, tables
from tests.sidecar.throttle.build import TIMED_OUT, reading, whole

PAGE = "how-it-decides"
LIVES = [table for table in tables(PAGE) if table.header[0] == "minute"]
FACTORS = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0)
LIMIT, STOP_LINE = MinAvailableBytes(30), MinAvailableBytes(10)
SIZES = {"room": 50, "full": 30, "near": 11, "low": 10}
"""Available bytes of a volume of 100, at that limit and stop line."""


def the_table(column: str) -> Table:
    """The one table that begins with this column."""
    (found,) = [table for table in tables(PAGE) if table.header[0] == column]
    return found


def limit_of(text: str) -> Limit:
    """10 bytes, or 0.1 of the size."""
    number, _, unit = text.partition(" ")
    if unit == "bytes":
        return MinAvailableBytes(int(number))
    assert "of the size" == unit
    return MinAvailableRatio(float(number))


def test_the_limits_boundary() -> None:
    """Less than or equal violates, in bytes and in ratios, and for a volume without a size."""
    for row in the_table("limit").rows:
        volume = Volume(1, "/d1", int(row["total"]), int(row["available"]))
        verdict = limit_of(row["limit"]).judge(volume)
        assert row["violates"] == ("yes" if verdict.violates else "no"), row


def seconds(minute: str) -> float:
    """2, 2:00 or 2:00.001 as seconds."""
    whole_minutes, _, rest = minute.partition(":")
    return int(whole_minutes) * 60 + float(rest or 0)


def observation(at: float, does: dict[int, str], *, lists_fenced: bool) -> Observation:
    """What a poll sees of brokers that do this."""
    answers = [
        reading(broker, at, {"/d1": SIZES[each]}) for broker, each in does.items() if each in SIZES
    ]
    answers += [
        reading(broker, at, offline=["/d1"]) for broker, each in does.items() if each == "offline"
    ]
    silent = [broker for broker, each in does.items() if each == "silent"]
    fenced = [broker for broker, each in does.items() if each == "fenced"]
    assert len(does) == len(answers) + len(silent) + len(fenced) + list(does.values()).count("gone")
    return whole(at, answers, silent=silent, fenced=fenced if lists_fenced else None)


def polled(
    factors: VolumeLimit, memory: Memory, at: float, row: dict[str, str], *, lists_fenced: bool
) -> Memory:
    """Memory after the row's poll, if it has one."""
    does = {
        int(column.removeprefix("broker ")): cell
        for column, cell in row.items()
        if column.startswith("broker ") and cell
    }
    if "fails" in does.values():
        return fail(memory, TIMED_OUT)
    if does:
        return factors.fold(memory, observation(at, does, lists_fenced=lists_fenced))
    return memory


def reported(factors: VolumeLimit, memory: Memory, at: float, what: str) -> Memory:
    """Memory after what an operator does in a row."""
    if match := re.fullmatch(r"override ([\d.]+) for (\d+) min", what):
        factor, minutes = float(match[1]), int(match[2])
        return replace(memory, override=Override(factor, "by hand", at, at + minutes * 60))
    if match := re.fullmatch(r"forget broker (\d+)('s log dir)?", what):
        return factors.forget(memory, int(match[1]), "/d1" if match[2] else None)
    assert what in {"", "override ends"}, what
    return memory


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.before[:40])
def test_a_factors_life(life: Table) -> None:
    """Each row's events at that moment make that factor and source."""
    match = re.search(r"[Vv]alidity (\d+) min, fallback ([\d.]+):$", life.before)
    assert match, life.before
    stop_line = STOP_LINE if "stop" in life.header else None
    factors = VolumeLimit(Rules(LIMIT, int(match[1]) * 60.0, stop_line), float(match[2]))
    lists_fenced = "Before Kafka 4.0" not in life.before
    memory = Memory()
    for row in life.rows:
        at = seconds(row["minute"])
        memory = reported(factors, memory, at, row.get("what happens", ""))
        if row.get("what happens") == "override ends":
            memory = replace(memory, override=None)
        memory = polled(factors, memory, at, row, lists_fenced=lists_fenced)
        decision = factors.decide(memory, at)
        assert (row["factor"], row["source"]) == (str(decision.factor), decision.source.value), row
        assert row.get("stop", "no") == ("yes" if decision.stop_line_reached else "no"), row


def test_every_source_and_event_is_shown() -> None:
    """The tables have every source of what is polled and in force, and all that a broker can do."""
    cells = {cell for life in LIVES for row in life.rows for cell in row.values()}
    shown = {*SIZES, "fails", "silent", "offline", "fenced", "gone"}
    assert shown | {source.value for source in Source} - {"disabled", "shadow"} <= cells


def filling(seconds_left: float) -> Memory:
    """Memory of a volume that reaches its limit in so many seconds."""
    available = 10_000_000
    rate = (available - 10) / seconds_left
    before = reading(1, 0.0, {"/d1": round(available + 10 * rate)}, total=10**12)
    memory = FACTORS.fold(Memory(), whole(0.0, [before]))
    return FACTORS.fold(memory, whole(10.0, [reading(1, 10.0, {"/d1": available}, total=10**12)]))


def failed(times: int) -> Memory:
    """Memory after so many failed polls in a row."""
    memory = still()
    for _ in range(times):
        memory = fail(memory, Failure(FailureKind.CONNECT, "nothing listens"))
    return memory


def still() -> Memory:
    """Memory of a volume that does not fill."""
    memory = FACTORS.fold(Memory(), whole(0.0, [reading(1, 0.0, {"/d1": 50})]))
    return FACTORS.fold(memory, whole(10.0, [reading(1, 10.0, {"/d1": 50})]))


SEEN: dict[str, Callable[[str], Memory]] = {
    r"one reading, so no rate": lambda _: FACTORS.fold(
        Memory(), whole(10.0, [reading(1, 10.0, {"/d1": 50})])
    ),
    r"no volume fills": lambda _: still(),
    r"(\d+) s to the limit": lambda number: filling(float(number)),
    r"the (\d)\w\w poll(?: in a row)? failed": lambda number: failed(int(number)),
}


def test_when_it_polls() -> None:
    """Each row's observation makes that wait until the next whole poll."""
    for row in the_table("what was seen").rows:
        reported = re.fullmatch(r"(.*?)(?:, (\d+) s after a release)?", row["what was seen"])
        assert reported is not None
        what, since_s = reported.groups()
        (memory,) = [
            make(match[match.lastindex or 0])
            for pattern, make in SEEN.items()
            if (match := re.fullmatch(pattern, what))
        ]
        released = Release(10.0 - float(since_s)) if since_s else None
        plan = next_poll(memory, Timing(60.0, 1.0), 10.0, 0.0, released)
        wait_s = float(row["next poll after"].removesuffix(" s"))
        assert None is plan.brokers
        assert pytest.approx(wait_s, rel=1e-3) == plan.delay_s, row
