"""The page says what was measured, what is to be reached and whether it was."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.enforcement import __main__ as program
from benchmarks.enforcement.comparison import Comparison, compare
from benchmarks.enforcement.contenders import Contender
from benchmarks.enforcement.course import Course
from benchmarks.enforcement.figures import Figures
from benchmarks.enforcement.polls import Cost
from benchmarks.enforcement.report import poll_ms, report
from benchmarks.enforcement.scenarios import SCENARIOS
from benchmarks.enforcement.scene import Scenario
from kafka_lab.series import Series
from sidecar.errors import ClusterError
from tests.benchmarks.pages import run, texts

OURS = Figures(
    before=18e6,
    stopped_s=0.2,
    past_at_throttled=2e6,
    past_at_freed=5e6,
    throttled_s=22.0,
    longest_throttle_s=4.5,
    let_through=150e3,
    promise=180e3,
    back_s=5.5,
    watched_s=20.0,
    flood=1.1,
    failed_records=0,
)
PEER = replace(
    OURS, stopped_s=1.5, past_at_throttled=18e6, longest_throttle_s=2.1e6, let_through=0.0,
    promise=180e3, back_s=None, watched_s=90.0, flood=None,
)  # fmt: skip


def _row(rows: list[Comparison], start: str) -> Comparison:
    (row,) = [row for row in rows if row.figure.startswith(start)]
    return row


def test_what_is_reached_is_said_of_each_figure() -> None:
    """It is a fifth of the plugin's, or a fixed bound; "> 90 s" stands for who never came."""
    rows = list(compare([PEER], [OURS], poll_s=1.0))
    assert all(row.met for row in rows if row.target)
    stopped = _row(rows, "from crossing")
    assert ("1.50 s", "0.20 s", "≤ 0.30 s", True) == (
        stopped.peer,
        stopped.ours,
        stopped.target,
        stopped.met,
    )
    assert "≤ 3.60 MB" == _row(rows, "past the limit on").target
    assert "≤ 5.00 s" == _row(rows, "longest throttle").target
    assert "2,100,000 s" == _row(rows, "longest throttle").peer
    assert "≤ 180 kB/s" == _row(rows, "let through").target
    back = _row(rows, "from space freed")
    assert ("> 90.0 s", "5.50 s", "≤ 7.00 s") == (back.peer, back.ours, back.target)
    assert "" == _row(rows, "most in a second").peer


@pytest.mark.parametrize(
    ("change", "start"),
    [
        ({"stopped_s": 0.31}, "from crossing"),
        ({"past_at_throttled": 3.7e6}, "past the limit on"),
        ({"longest_throttle_s": 5.1}, "longest"),
        ({"let_through": 181e3}, "let through"),
        ({"back_s": 7.1}, "from space"),
        ({"back_s": None}, "from space"),
        ({"flood": 1.3}, "most"),
    ],
)
def test_what_is_missed_is_said(change: dict[str, float | None], start: str) -> None:
    """Each is marked by itself, and no other figure."""
    rows = list(compare([PEER], [replace(OURS, **change)], poll_s=1.0))  # type: ignore[arg-type]  # each is of its field's type
    assert [start] == [start for row in rows if row.met is False and row.figure.startswith(start)]
    assert 1 == sum(row.met is False for row in rows)


def test_of_several_rounds_the_median_is_reported_and_the_range() -> None:
    """A round that was not watched to its end says nothing of it; one missed return is a miss."""
    ours = [replace(OURS, stopped_s=seconds) for seconds in (0.1, 0.3, 0.2)]
    ours[1] = replace(ours[1], back_s=None, watched_s=90.0)
    rows = list(compare([PEER, replace(PEER, watched_s=0.0)], ours, poll_s=1.0))
    assert "0.20 s (0.10 to 0.30)" == _row(rows, "from crossing").ours
    back = _row(rows, "from space")
    assert ("> 90.0 s", "5.50 s (5.50 to 5.50), > 90.0 s", False) == (
        back.peer,
        back.ours,
        back.met,
    )


def test_a_return_that_was_not_waited_for_is_not_reported() -> None:
    """The plugin's later rounds are not waited for; here none is."""
    assert "" == _row(list(compare([replace(PEER, watched_s=0.0)], [], 1.0)), "from space").peer


def test_one_alone_is_no_comparison() -> None:
    """Without the plugin's figures a fifth of them is no target; without ours nothing is met."""
    assert None is _row(list(compare([], [OURS], 1.0)), "from crossing").met
    assert "" == _row(list(compare([], [OURS], 1.0)), "from crossing").target
    assert all(row.met is None for row in compare([PEER], [], 1.0))


def test_a_slow_poll_is_allowed_for() -> None:
    """The bound is pause.max + 2 s + the poll."""
    assert "≤ 66.0 s" == _row(list(compare([PEER], [OURS], 60.0)), "from space").target


def test_the_cost_of_a_poll_is_what_it_adds() -> None:
    """It is the docstring's example, and that of a baseline measured for twice as long."""
    cost = Cost(60.0, broker_cpu_s=9.0, sidecar_cpu_s=0.0, requests=270.0)
    for bare in (Cost(60.0, 3.0, 0.0, 0.0), Cost(120.0, 6.0, 0.0, 0.0)):
        assert pytest.approx(66.67, abs=0.01) == poll_ms(cost, bare)


def _course(contender: str, freed_at: float) -> Course:
    """Returns 18 MB/s for 20 s and none after that."""
    return Course(
        "librdkafka-3",
        contender,
        connections=3,
        limit_bytes=100_000_000,
        acknowledged=Series([(0.0, 0.0), (20.0, 360e6), (60.0, 360e6)]),
        stored=Series([(0.0, 0.0), (20.0, 720e6), (60.0, 720e6)]),
        available=Series([(0.0, 340e6), (20.0, 100e6), (60.0, 90e6)]),
        crossed_at=20.0,
        freed_at=freed_at,
        notes=["broker 1 ended itself"],
    )


def test_the_page_has_what_there_is(tmp_path: Path) -> None:
    """It has a table, a picture and the notes of each scenario measured, and the costs."""
    _course("peer", 42.0).save(tmp_path / "librdkafka-3.peer.0.json")
    _course("ours", 42.2).save(tmp_path / "librdkafka-3.ours.0.json")
    rates = {"none": [100.0, 104.0], "peer": [50.0, 52.0], "ours": [99.0, 102.96]}
    (tmp_path / "overhead.json").write_text(json.dumps({"large": rates, "small": rates}))
    costs = {
        key: {"seconds": 60, "broker_cpu_s": cpu, "sidecar_cpu_s": 1.0, "requests": 270}
        for key, cpu in (("none", 3.0), ("peer", 12.0), ("ours", 3.9))
    }
    (tmp_path / "polls.json").write_text(json.dumps(costs))
    (tmp_path / "machine.json").write_text(json.dumps(["4 cores"]))

    page = report(tmp_path, tmp_path / "page.md")

    assert page == (tmp_path / "page.md").read_text()
    assert "- 4 cores" in page
    assert "java-3" not in page
    assert "throttle-sidecar: broker 1 ended itself" in page
    assert "| 50.0 % (50.0 to 50.0) | 99.0 % (99.0 to 99.0) | within noise" in page
    assert "(without a callback: ±2.0 %) | yes |" in page
    assert "| a sidecar's own CPU for it |  | 11.1 ms |" in page
    assert "| 100 ms | 10.0 ms | ≤ 20.0 ms | yes |" in page
    assert " | NO |\n" in page
    said = texts(tmp_path / "page-librdkafka-3.svg")
    assert 2 == said.count("Strimzi's plugin 0.3.1"), "a line in each of the two panels"
    # 0.2 s apart: one mark.
    assert {"limit crossed", "freed", "limit"} <= set(said)


def test_one_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each round is at another phase; the reason is shown, and the exit code is 1."""
    phases = []

    async def happen(scenario: Scenario, contender: Contender, phase: float) -> Course:
        if contender.key == "ours":
            raise ClusterError("no jar")
        phases.append(phase)
        return _course(contender.key, 42.0)

    monkeypatch.setattr(program, "happen", happen)
    assert 1 == run(monkeypatch, program, tmp_path, "librdkafka-3", "--rounds", "2")
    assert [0.0, 0.5] == phases
    output = capsys.readouterr()
    assert "no jar" in output.err
    assert "| 18.0 MB/s (18.0 to 18.0) |" in output.out


def test_a_long_throttle_is_as_long_as_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It has one round, however many are asked for; the others keep their length."""
    seen = []

    async def happen(scenario: Scenario, contender: Contender, phase: float) -> Course:
        seen.append((scenario.key, contender.key, scenario.throttled_s, phase))
        return _course(contender.key, 42.0)

    monkeypatch.setattr(program, "happen", happen)
    words = ["librdkafka-3", "librdkafka-3-long", "--only", "ours", "--rounds", "2"]
    assert 0 == run(monkeypatch, program, tmp_path, *words, "--seconds", "60")
    assert [
        ("librdkafka-3", "ours", 22.0, 0.0),
        ("librdkafka-3", "ours", 22.0, 0.5),
        ("librdkafka-3-long", "ours", 60.0, 0.0),
    ] == seen


def test_a_long_throttle_has_room_for_what_leaks_in_it() -> None:
    """That is a twentieth of what fills the volume, in the time beyond the others' 22 s."""
    short, long = (
        next(each for each in SCENARIOS if each.key == key)
        for key in ("librdkafka-3", "librdkafka-3-long")
    )
    assert 12e6 * 6 + (32 << 20) == short.limit_bytes
    assert pytest.approx(short.limit_bytes + 0.05 * 12e6 * 578, abs=1) == long.limit_bytes
    assert pytest.approx(12e6 * (6 + 60 + 5) + (1 << 30), abs=1) == long.ballast_bytes
