"""The page says what was measured of each variant, and promises no more."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from benchmarks.producer_ids import __main__ as program
from benchmarks.producer_ids.course import Course
from benchmarks.producer_ids.report import report, table
from benchmarks.producer_ids.variants import VARIANTS, Variant
from sidecar.errors import ClusterError
from tests.benchmarks.pages import row, run, texts
from tests.benchmarks.producer_ids_course import course


def free(brokers: int = 1) -> Course:
    """Returns a course that throttles nobody: 30 ids a second all the time."""
    found = course("none", brokers, a_second=30.0)
    found.throttled_at = None
    return found


def test_a_column_for_each_variant() -> None:
    """Figures have units; what isn't there is left empty."""
    found = table({"none": [free()], "both": [course()]})
    assert "| | free | both |" == found.splitlines()[0]
    assert ["", "0.40 s"] == row(found, "throttled by every")
    assert ["30.0", "0.50"] == row(found, "ids that brokers allocated")
    assert ["27.0", "0.45"] == row(found, "ids that were used")
    assert ["1,000 ms", "1,000 ms"] == row(found, "longest throttle time with an id")
    assert ["2,332,800", "38,880"] == row(found, "retained after a day")
    assert ["4.83 MB/s", "4.83 MB/s"] == row(found, "the neighbour ")
    assert ["2.00 MB/s", "2.00 MB/s"] == row(found, "the neighbour's slowest")


def test_of_several_rounds_the_median_is_reported_and_the_range() -> None:
    """The three rounds have a second, half a second and a tenth."""
    found = table({"both": [course(a_second=each) for each in (1.0, 0.1, 0.5)]})
    assert ["0.50 (0.10 to 1.00)"] == row(found, "ids that brokers allocated")


def test_the_page_has_what_there_is(tmp_path: Path) -> None:
    """Each cluster has a table and a picture, and in words what is promised of it."""
    free(3).save(tmp_path / "3.none.0.json")
    course("both", 3).save(tmp_path / "3.both.0.json")
    (tmp_path / "machine.json").write_text(json.dumps(["measured on 2026-11-21", "4 cores"]))

    page = report(tmp_path, tmp_path / "page.md")

    assert page == (tmp_path / "page.md").read_text()
    assert "- measured on 2026-11-21\n- 4 cores\n" in page
    assert ["## What is promised", "## 3 brokers"] == [
        each for each in page.splitlines() if each.startswith("## ")
    ]
    assert (
        "- both, on 3 brokers: 0.45 ids a second where 27.0 came without a throttle; "
        "of each client one in 35.6 s." in " ".join(page.split())
    )
    assert "![3 brokers](page-3.svg)" in page
    assert 100 >= max(len(each) for each in page.splitlines() if "|" not in each)
    said = texts(tmp_path / "page-3.svg")
    assert 3 == said.count("free") == said.count("both"), "a line in each of three panels"


def test_nothing_is_promised_beside_nothing(tmp_path: Path) -> None:
    """There is no course that is free, or none that is throttled."""
    free().save(tmp_path / "1.none.0.json")
    assert "promised" not in report(tmp_path, tmp_path / "page.md")
    course("factor").save(tmp_path / "1.factor.0.json")
    (tmp_path / "1.none.0.json").unlink()
    assert "promised" not in report(tmp_path, tmp_path / "page.md")


def test_a_client_that_got_none_is_said_so(tmp_path: Path) -> None:
    """Nothing is divided by it."""
    free().save(tmp_path / "1.none.0.json")
    course("ip", a_second=0.0).save(tmp_path / "1.ip.0.json")
    page = report(tmp_path, tmp_path / "page.md")
    assert "both + IP rate, on 1 broker: 0.00 ids a second" in page
    assert "of each client none." in " ".join(page.split())


def test_one_cluster_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is shown, the exit code is 1, and the page has what was measured, and when."""

    async def happen(brokers: int, variants: Sequence[Variant]) -> AsyncIterator[Course]:
        assert VARIANTS == variants
        yield free(brokers)
        if brokers == 1:
            raise ClusterError("no jar")
        yield course("both", brokers)

    monkeypatch.setattr(program, "happen", happen)
    assert 1 == run(monkeypatch, program, tmp_path, "--rounds", "2")
    said = capsys.readouterr()
    assert "no jar" in said.err
    assert "## 1 broker\n\n| | free |\n" in said.out
    assert "## 3 brokers\n\n| | free | both |\n" in said.out
    assert "- measured on 20" in said.out
    assert ["3.both.0.json", "3.both.1.json", "3.none.0.json", "3.none.1.json"] == sorted(
        file.name for file in tmp_path.glob("3.*.json")
    )
    assert 0 == run(monkeypatch, program, tmp_path, "3")


def test_the_page_alone_measures_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was said of the machine stays."""
    monkeypatch.setattr(program, "happen", None)
    (tmp_path / "machine.json").write_text(json.dumps(["another machine"]))
    assert 0 == run(monkeypatch, program, tmp_path, "report")
    assert "- another machine" in (tmp_path / "page.md").read_text()
