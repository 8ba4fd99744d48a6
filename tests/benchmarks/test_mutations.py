"""The figures of a storm that is made by hand, with each one's value known, and their page."""

from pathlib import Path

import pytest

from benchmarks.mutations import __main__ as program
from benchmarks.mutations.__main__ import BENCHMARK, Run, created_so_far, figures, slower_s
from benchmarks.mutations.others import Operation
from benchmarks.mutations.storm import Load, Request
from tests.benchmarks.pages import figure, page, row, run, texts

pytestmark = pytest.mark.slow

OVER = "due time of the last"


def made() -> Run:
    """Returns a storm of 2 s: two requests are answered; others wait until 4 s for records."""
    return Run(
        "kafka",
        storm_s=2.0,
        watched_until=10.0,
        operations=[
            Operation(-3.0, -2.9, -2.8),
            Operation(-2.0, -1.9, -1.6),
            Operation(-1.0, -0.7, -0.8),
            Operation(0.0, 0.5, 4.0),
            Operation(1.0, 1.25, 4.5),
            Operation(1.9, 2.0, 4.0),
            Operation(3.5, 3.6, 4.5),
            Operation(5.0, 5.1, 5.5),
        ],
        requests=[
            Request(0.0, 50, admitted=50, created=50, answered=0.5),
            Request(0.1, 50, admitted=50, created=5, throttled=45, answered=0.4),
            Request(0.2, 50, answered=0.25),
            Request(0.3, 50, admitted=1, error="no answer"),
        ],
    )


def test_every_figure_of_a_run() -> None:
    """They are medians before and in the storm's time, the longest after it began, and counts."""
    expected = {
        "others before the storm: answered, median": 0.1,
        "others before the storm: first record, median": 0.2,
        "others in its time: answered, median": 0.25,
        "others from then on: answered, longest": 0.5,
        "others in its time: first record, median": 3.5,
        "others from then on: first record, longest": 4.0,
        "due time of the last with a longer wait for its first record than before": 3.5,
        "others' operations that failed": 0,
        "the storm: requests that reached Kafka": 3,
        "the storm: topics created": 55,
        "the storm: topics rejected by Kafka, each time": 45,
        "the storm: topics rejected by the endpoint, each time": 50,
        "the storm: answered by Kafka, median": 0.4,
        "the storm: answered by the endpoint alone, median": 0.05,
        "the storm: requests that failed": 1,
    }
    found = figures(made())
    assert pytest.approx(expected) == {name: each.value for name, each in found.items()}
    assert not any(each.is_least for each in found.values())


def test_what_was_not_seen_counts_with_what_was_seen_of_it() -> None:
    """One came at 6 s and had no record when the watching ended; one failed likewise."""
    of = made()
    of.operations += [Operation(6.0, 6.1), Operation(7.0, error="no leader")]
    found = figures(of)
    record, answer = (
        found[f"others from then on: {what}, longest"] for what in ("first record", "answered")
    )
    assert (4.0, True) == (record.value, record.is_least)
    assert (3.0, True) == (answer.value, answer.is_least)
    assert (7.0, 1) == (figure(found, OVER), figure(found, "others' operations that failed"))


def test_a_storm_that_nobody_notices_is_never_over() -> None:
    """Nobody waited longer than three times the wait before it and a quarter of a second."""
    of = made()
    of.operations = [Operation(at, at + 0.1, at + 0.2) for at in (-3.0, -2.0, 0.5, 1.5)]
    of.operations.insert(2, Operation(-1.0, -0.9, 4.0))
    assert figure(figures(of), OVER) is None
    assert pytest.approx(0.6) == slower_s(0.2)
    assert 0.25 == slower_s(0.05)


@pytest.mark.parametrize("part", [slice(0, 3), slice(3, None)])
def test_without_others_there_are_no_figures(part: slice) -> None:
    """There are none before the storm and none in its time."""
    of = made()
    of.operations = of.operations[part]
    with pytest.raises(ValueError, match="no operations"):
        figures(of)


def test_topics_are_there_when_their_answers_are() -> None:
    """The answers' order counts, not the requests'; those without topics change nothing."""
    assert [(0.0, 0.0), (0.4, 5.0), (0.5, 55.0)] == created_so_far(made())


def test_the_page_has_each_arm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It has a column of each, a picture of them, and the notes; the load is as asked for."""
    loads: list[Load] = []

    async def happen(arm: str, load: Load) -> Run:
        loads.append(load)
        return Run(
            arm,
            storm_s=2.0,
            watched_until=8.0,
            operations=[
                Operation(-1.0, -0.95, -0.9),
                Operation(1.0, 1.05, 4.0 if arm == "none" else 1.1),
            ],
            requests=[Request(0.0, 50, admitted=50, created=50, answered=0.25)],
            notes=["broker 1 ended by itself"] if arm == "none" else [],
        )

    monkeypatch.setattr(program, "happen", happen)
    words = ["--arms", "none", "endpoint", "--requests", "7", "--seconds", "2"]
    assert 0 == run(BENCHMARK, tmp_path, *words)
    assert [Load(seconds=2.0, requests=7)] * 2 == loads
    text = page(tmp_path)
    assert ["no quota", "admission endpoint"] == row(text, "figure")
    assert ["3.00 s", "100 ms"] == row(text, "others in its time: first record")
    assert ["1.00 s", ""] == row(text, OVER)
    assert ["50", "50"] == row(text, "the storm: topics created")
    assert "- no quota: broker 1 ended by itself" in text
    said = texts(tmp_path / "page.svg")
    assert 3 == said.count("admission endpoint"), "a line in each of the three panels"
    assert 0 == said.count("Kafka's quota")
