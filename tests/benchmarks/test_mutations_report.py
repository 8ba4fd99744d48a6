"""The page has what was measured, and names the contender."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.mutations import __main__ as program
from benchmarks.mutations.course import Course, Operation, Request
from benchmarks.mutations.figures import figures
from benchmarks.mutations.report import as_table, report
from benchmarks.mutations.scene import Contender
from benchmarks.mutations.storm import Load
from sidecar.errors import ClusterError
from tests.benchmarks.pages import row, run, texts


def _course(contender: str, wait: float = 0.1) -> Course:
    """The record of who comes in the storm's time takes so long."""
    return Course(
        contender,
        storm_s=2.0,
        watched_until=8.0,
        operations=[Operation(-1.0, -0.95, -0.9), Operation(1.0, 1.05, 1.0 + wait)],
        requests=[Request(0.0, 50, admitted=50, created=50, answered=0.25)],
    )


def test_the_page_has_what_there_is(tmp_path: Path) -> None:
    """It has a column of each contender, a picture of them, the machine, the load, the notes."""
    noted = _course("none", 3.0)
    noted.notes.append("broker 1 ended itself")
    noted.save(tmp_path / "none.0.json")
    _course("endpoint").save(tmp_path / "endpoint.0.json")
    (tmp_path / "machine.json").write_text(json.dumps(["4 cores"]))
    (tmp_path / "load.json").write_text(json.dumps(asdict(Load(requests=7))))

    page = report(tmp_path, tmp_path / "page.md")

    assert page == (tmp_path / "page.md").read_text()
    assert "\n- 4 cores\n" in page
    assert "350 topics in all" in page
    assert ["no quota", "admission endpoint"] == row(page, "figure")
    assert ["3.00 s", "100 ms"] == row(page, "others in its time: first record")
    assert ["1.00 s", "none"] == row(page, "the last whose first record")
    assert ["50", "50"] == row(page, "the storm: topics created")
    assert "could be used: no quota 3.00 s, admission endpoint 100 ms.\n" in page
    assert "- no quota: broker 1 ended itself" in page
    said = texts(tmp_path / "page.svg")
    assert 3 == said.count("admission endpoint"), "a line in each of the three panels"
    assert 0 == said.count("Kafka's quota")


def test_rounds_are_reported_by_their_median_and_their_spread() -> None:
    """A longest wait that was not over in one of them is a lower bound."""
    rounds = [figures(_course("none", wait)) for wait in (0.9, 0.8, 1.2)]
    table = as_table({"no quota": rounds})
    assert ["900 ms (800 ms to 1.20 s)"] == row(table, "others in its time: first record")
    assert "answered, longest | 50 ms (50 ms to 50 ms) |" in table
    assert "first record, longest | 900 ms (800 ms to 1.20 s) |" in table
    unseen = replace(rounds[0], record=replace(rounds[0].record, unseen=True))
    assert "first record, longest | > 900 ms |" in as_table({"no quota": [unseen]})
    silent = replace(rounds[0], own_s=None)
    assert ["none"] == row(as_table({"no quota": [silent]}), "the storm: answered by Kafka")


def test_one_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is shown, the exit code is 1, and the load is the one that was asked for."""
    loads: list[Load] = []

    async def happen(contender: Contender, load: Load) -> Course:
        loads.append(load)
        if contender.key == "kafka":
            raise ClusterError("no jar")
        return _course(contender.key)

    monkeypatch.setattr(program, "happen", happen)
    assert 1 == run(monkeypatch, program, tmp_path, "--requests", "7", "--seconds", "2")
    assert [Load(seconds=2.0, requests=7)] * 3 == loads
    output = capsys.readouterr()
    assert "no jar" in output.err
    assert ["no quota", "admission endpoint"] == row(output.out, "figure")


def test_the_report_alone_measures_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It leaves what is known of the machine and of the load as it is."""
    _course("none").save(tmp_path / "none.0.json")
    (tmp_path / "machine.json").write_text(json.dumps(["4 cores"]))
    (tmp_path / "load.json").write_text(json.dumps(asdict(Load(requests=7))))
    assert 0 == run(monkeypatch, program, tmp_path, "report")
    assert "\n- 4 cores\n" in (tmp_path / "page.md").read_text()


def test_results_of_two_loads_are_not_mixed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One part can be measured again with the same load; and what fails now has no old figures."""

    async def happen(contender: Contender, load: Load) -> Course:
        if load.seconds == 3.0:
            raise ClusterError("no jar")
        return _course(contender.key, load.seconds)

    monkeypatch.setattr(program, "happen", happen)
    assert 0 == run(monkeypatch, program, tmp_path, "--seconds", "2", "--rounds", "2")
    assert 0 == run(monkeypatch, program, tmp_path, "kafka", "--seconds", "2")
    assert ["none.0.json", "none.1.json"] == sorted(each.name for each in tmp_path.glob("none.*"))
    assert ["kafka.0.json"] == [each.name for each in tmp_path.glob("kafka.*")]
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, program, tmp_path, "kafka", "--seconds", "1")
    assert 2 == ended.value.code
    assert "results of another load" in capsys.readouterr().err
    assert 1 == run(monkeypatch, program, tmp_path, "--seconds", "3")
    assert "| figure |" not in (tmp_path / "page.md").read_text()
