"""The figures of a run made by hand, what ours are to be beside the plugin's, and the costs."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from benchmarks.enforcement import __main__ as program
from benchmarks.enforcement.__main__ import BENCHMARK
from benchmarks.enforcement.costs import Cost, overhead_rows, poll_ms, poll_rows
from benchmarks.enforcement.figures import (
    BACK,
    FLOOD,
    LEAKED,
    LONGEST,
    PAST,
    STOPPED,
    compare,
    figures,
    promise,
    targets,
)
from benchmarks.enforcement.scene import SCENARIOS, Leak, Run, Scenario
from benchmarks.harness.tables import Value
from benchmarks.harness.throttles import Throttle
from kafka_lab.series import Series
from sidecar.errors import ClusterError
from tests.benchmarks.pages import counted, figure, page, row, run, texts

pytestmark = pytest.mark.slow

MB = 1_000_000
CROSSED, FREED = 20.0, 40.0


def made(flood: float = 18.0 * MB) -> Run:
    """Returns 18 MB/s, 0.18 while throttled; then a flood of 2 s and 18 again until 70."""
    throttled, back = 20.4, 46.0
    after = (back + 2.0, flood), (70.0, 18.0 * MB)
    available = [(0.0, 340.0), (CROSSED, 100.0), (throttled, 100.0 - 12.0 * (throttled - CROSSED))]
    available += [(FREED, 90.0), (FREED + 0.02, 400.0)]
    return Run(
        connections=3,
        limit_bytes=100 * MB,
        acknowledged=counted((throttled, 18.0 * MB), (back, 0.18 * MB), *after),
        stored=counted((throttled, 36.0 * MB), (FREED, 0.36 * MB)),
        available=Series((at, each * MB) for at, each in available),
        crossed_at=CROSSED,
        freed_at=FREED,
        longest_throttle_s=4.25,
        failed_records=7,
        leaks=[Leak(10.0, 0.6 * MB, 4.0), Leak(10.0, 0.6 * MB, 40.0), Leak(10.0, 0.6 * MB, 60.0)],
    )


def test_every_figure_of_a_run() -> None:
    """They stop 0.04 s early, since a fifth of the rate fits in 0.2 s; they are back likewise."""
    found = figures(made())
    value = partial(figure, found)
    assert pytest.approx(18.0, rel=1e-6) == value("before")
    # 36 MB/s for 0.038 s and 0.36 for the rest of 0.2 s are a fifth of 36.
    stopped = value(STOPPED) or 0.0
    assert pytest.approx(0.4 - 0.038, abs=0.03) == stopped
    assert pytest.approx(12.0 * stopped, rel=1e-3) == value(PAST)
    assert pytest.approx(10.0) == value("past the limit when space was freed")
    assert pytest.approx(20.0) == value("after")
    assert (4.25, 7) == (value(LONGEST), value("records"))
    # Two seconds of which 1.8 have the full rate.
    assert pytest.approx(6.0 - 0.2, abs=0.04) == value(BACK)
    assert pytest.approx(1.0, abs=0.01) == value(FLOOD)
    assert pytest.approx(180.0) == value(LEAKED)


def test_the_promise_is_of_each_broker_by_itself() -> None:
    """Its budget is 60 kB/s, or three connections' requests each 4 s if those are more.

    A request of each in the 10 s that were counted comes on top.
    """
    # 150 kB a request: 112.5 kB/s, and 45 at the ends; 15 kB: 11 and 4.5; 10 kB: 7.5 and 3.
    assert pytest.approx((112.5 + 45.0) + (60.0 + 4.5) + (60.0 + 3.0)) == promise(made())
    without = made()
    without.leaks = []
    assert (None, None) == (promise(without), figure(figures(without), LEAKED))


def test_a_flood_is_the_most_in_one_second() -> None:
    """It is counted after traffic is back, within 10 s of that."""
    of = made(flood=72.0 * MB)
    assert pytest.approx(4.0, abs=0.02) == figure(figures(of), FLOOD)
    of.acknowledged = counted((20.4, 18.0 * MB), (46.0, 0.0), (57.0, 18.0 * MB), (60.0, 72.0 * MB))
    assert pytest.approx(1.0, abs=0.02) == figure(figures(of), FLOOD)


def test_producers_that_are_not_back_were_watched() -> None:
    """Producers that never returned have no flood; a return that was not waited for is unknown."""
    of = made()
    of.acknowledged = counted((20.4, 18.0 * MB), (69.0, 0.18 * MB))
    found = figures(of)
    assert None is figure(found, FLOOD)
    assert pytest.approx(29.0) == found[BACK].value
    assert found[BACK].is_least
    of.acknowledged = counted((20.4, 18.0 * MB), (40.9, 0.18 * MB))
    assert None is figures(of)[BACK].value


def test_producers_that_write_on_are_not_throttled() -> None:
    """Stored bytes count, whatever acknowledgements say."""
    of = made()
    of.stored = counted((FREED, 36.0 * MB))
    assert of.throttled_at is None
    assert (None, None) == (figure(figures(of), STOPPED), figure(figures(of), PAST))


def test_a_window_that_is_not_over_says_nothing() -> None:
    """A run is read while it happens: the last half second is no second of silence."""
    of = made()
    of.stored = counted((20.4, 36.0 * MB), (20.9, 0.0))
    assert of.throttled_at is None
    of.acknowledged = counted((20.4, 18.0 * MB), (46.0, 0.0), (47.0, 18.0 * MB))
    assert of.back_at is None


def test_a_run_without_a_crossing_has_no_figures() -> None:
    """It is refused: no producer was throttled in it."""
    of = made()
    of.crossed_at = None
    assert (None, None) == (of.throttled_at, of.back_at)
    with pytest.raises(ValueError, match="never crossed"):
        figures(of)


OURS: dict[str, Value] = {
    STOPPED: Value(0.2, "s"),
    PAST: Value(2.0, "MB"),
    LONGEST: Value(4.5, "s"),
    LEAKED: Value(150.0, "kB/s"),
    BACK: Value(5.5, "s"),
    FLOOD: Value(1.1, "x"),
}
PEER: dict[str, Value] = OURS | {
    STOPPED: Value(1.5, "s"),
    PAST: Value(18.0, "MB"),
    LONGEST: Value(2.1e6, "s"),
    BACK: Value(90.0, "s", is_least=True),
    FLOOD: Value(None, "x"),
}


def compared(
    peer: list[dict[str, Value]], ours: list[dict[str, Value]], poll_s: float = 1.0
) -> dict[str, tuple[str, ...]]:
    """Returns figure -> the plugin's, ours, what it is to be, whether it is."""
    rows = compare(targets(peer, ours, [180.0] if ours else [], poll_s), peer, ours)
    return {name: tuple(cells) for name, *cells in rows}


def test_what_is_reached_is_said_of_each_figure() -> None:
    """It is a fifth of the plugin's, or a fixed bound; "> 90 s" stands for a return not seen."""
    assert {
        STOPPED: ("1.50 s", "0.20 s", "≤ 0.30 s", "yes"),
        PAST: ("18.0 MB", "2.00 MB", "≤ 3.60 MB", "yes"),
        LONGEST: ("2,100,000 s", "4.50 s", "≤ 5.00 s", "yes"),
        LEAKED: ("150 kB/s", "150 kB/s", "≤ 180 kB/s", "yes"),
        BACK: ("> 90.0 s", "5.50 s", "≤ 7.00 s", "yes"),
        FLOOD: ("", "1.10 x", "≤ 1.20 x", "yes"),
    } == compared([PEER], [OURS])
    assert "≤ 66.0 s" == compared([PEER], [OURS], 60.0)[BACK][2], "a slow poll is allowed for"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (STOPPED, Value(0.31, "s")),
        (PAST, Value(3.7, "MB")),
        (LONGEST, Value(5.1, "s")),
        (LEAKED, Value(181.0, "kB/s")),
        (BACK, Value(7.1, "s")),
        (BACK, Value(20.0, "s", is_least=True)),
        (FLOOD, Value(1.3, "x")),
    ],
)
def test_what_is_missed_is_said(name: str, value: Value) -> None:
    """Each is marked by itself, and no other figure."""
    found = compared([PEER], [{**OURS, name: value}])
    assert [name] == [each for each, cells in found.items() if cells[-1] == "NO"]


def test_one_missed_return_of_several_is_a_miss() -> None:
    """Of the others the median counts."""
    late = OURS | {BACK: Value(90.0, "s", is_least=True), STOPPED: Value(0.9, "s")}
    found = compared([PEER], [OURS, late, OURS])
    assert ("5.50 s (5.50 to 5.50), > 90.0 s", "NO") == (found[BACK][1], found[BACK][3])
    assert "yes" == found[STOPPED][3]


def test_one_alone_is_no_comparison() -> None:
    """Without the plugin's figures a fifth of them is no target; without ours nothing is met."""
    assert ("", "") == compared([], [OURS])[STOPPED][2:]
    assert {""} == {cells[-1] for cells in compared([PEER], []).values()}


def test_the_cost_of_a_poll_is_what_it_adds() -> None:
    """It is the docstring's example, and that of a baseline measured for twice as long."""
    cost = Cost(60.0, broker_cpu_s=9.0, sidecar_cpu_s=0.0, requests=270.0)
    for bare in (Cost(60.0, 3.0, 0.0, 0.0), Cost(120.0, 6.0, 0.0, 0.0)):
        assert pytest.approx(66.67, abs=0.01) == poll_ms(cost, bare)


def test_costs_are_beside_brokers_without_a_callback() -> None:
    """Throughput is compared round by round; a fifth of the plugin's CPU is the target."""
    rates = {"none": [100.0, 104.0], "peer": [50.0, 52.0], "ours": [99.0, 102.96]}
    (_, *cells), _ = overhead_rows({"large": rates, "small": rates})
    noise = "within noise (without a callback: ±2.0 %)"
    assert ["50.0 % (50.0 to 50.0)", "99.0 % (99.0 to 99.0)", noise, "yes"] == cells
    cpu = {"none": 3.0, "peer": 12.0, "ours": 3.9}
    (_, *poll), own = poll_rows({key: Cost(60, each, 1.0, 270) for key, each in cpu.items()})
    assert ["100 ms", "10.0 ms", "≤ 20.0 ms", "yes"] == poll
    assert ["a sidecar's own CPU for it", "", "11.1 ms", "", ""] == own


class TestProgram:
    @pytest.fixture(autouse=True)
    def seen(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, float, float, float]]:
        """Scenario, arm, length of the throttle, phase and how long the return is waited for."""
        seen: list[tuple[str, str, float, float, float]] = []

        async def happen(scenario: Scenario, arm: Throttle, phase: float, back_s: float) -> Run:
            seen.append((scenario.key, arm.key, scenario.throttled_s, phase, back_s))
            if scenario.key == "java-3" and arm.key == "ours":
                raise ClusterError("no jar")
            return replace(
                made(),
                freed_at=FREED if arm.key == "ours" else FREED + 0.2,
                notes=["broker 1 ended by itself"],
            )

        monkeypatch.setattr(program, "happen", happen)
        return seen

    def test_the_page_has_what_there_is(self, tmp_path: Path) -> None:
        """It has a table, a picture and the notes of each scenario that was measured."""
        assert 1 == run(BENCHMARK, tmp_path, "librdkafka-3", "java-3", "--rounds", "1")
        first, _, second = page(tmp_path).partition("## 3 producers of 6 MB/s, Java")
        assert ["18.0 MB/s", "18.0 MB/s", "", ""] == row(first, "before")
        assert ["18.0 MB/s", "", "", ""] == row(second, "before")
        assert "throttle-sidecar: broker 1 ended by itself" in first
        said = texts(tmp_path / "page-librdkafka-3.svg")
        assert 2 == said.count("Strimzi's plugin 0.3.1"), "a line in each of the two panels"
        # 0.2 s apart: one mark.
        assert {"limit crossed", "freed", "limit"} <= set(said)

    def test_each_round_is_at_another_phase(
        self, seen: list[tuple[str, str, float, float, float]], tmp_path: Path
    ) -> None:
        """The plugin's return is waited for once; a long throttle has the length asked for."""
        words = ["librdkafka-3", "librdkafka-3-long", "--rounds", "2", "--seconds", "60"]
        assert 0 == run(BENCHMARK, tmp_path, *words)
        assert [
            ("librdkafka-3", "peer", 22.0, 0.0, 90.0),
            ("librdkafka-3", "ours", 22.0, 0.0, 90.0),
            ("librdkafka-3", "peer", 22.0, 0.5, 0.0),
            ("librdkafka-3", "ours", 22.0, 0.5, 90.0),
            ("librdkafka-3-long", "peer", 60.0, 0.0, 150.0),
            ("librdkafka-3-long", "ours", 60.0, 0.0, 150.0),
        ] == seen


def test_a_long_throttle_has_room_for_what_leaks_in_it() -> None:
    """That is a twentieth of what fills the volume, in the time beyond the others' 22 s."""
    short, long = (SCENARIOS[key] for key in ("librdkafka-3", "librdkafka-3-long"))
    assert 12e6 * 6 + (32 << 20) == short.limit_bytes
    assert pytest.approx(short.limit_bytes + 0.05 * 12e6 * 578, abs=1) == long.limit_bytes
    assert pytest.approx(12e6 * (6 + 60 + 5) + (1 << 30), abs=1) == long.ballast_bytes
