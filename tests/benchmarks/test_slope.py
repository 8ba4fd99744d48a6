"""The figures of two runs that are made by hand, the table of them, and the program."""

from pathlib import Path

import pytest

from benchmarks import slope
from benchmarks.slope import ARMS, LIMIT_BYTES, Run, figures, holds, least_above, turns, violations
from kafka_lab.series import Series
from tests.benchmarks.pages import figure, page, row, run, texts

pytestmark = pytest.mark.slow

MB = 1_000_000
CROSSED = 100.0


def made(
    arm: str = "slope",
    *,
    minutes: float = 12.0,
    dip: tuple[float, float] | None = None,
    factors: tuple[float, ...] = (0.2,),
) -> Run:
    """18 MB/s until the soft limit, then 4 MB/s with 400 MB available, but for a dip (at, MB)."""
    of = Run(arm, crossed_at=CROSSED, longest_throttle_s=4.0, failed_records=1234)
    end = CROSSED + 60.0 * minutes
    rates = [(0.0, 0.0), (CROSSED, 1800.0 * MB), (end, 1800.0 * MB + 240.0 * MB * minutes)]
    of.acknowledged = Series(rates)
    for second in range(int(end) + 1):
        at = float(second)
        available = (2300 if at <= CROSSED else 400) * MB
        of.available.add(at, dip[1] * MB if dip and dip[0] == at else available)
        of.factor.add(at, 1.0 if at < CROSSED else factors[second % len(factors)])
    return of


def test_a_run_that_comes_to_rest() -> None:
    """4 MB/s pass, 100 MB above the limit, and nothing turns."""
    found = figures(made())
    expected = {
        "throughput before": 18.0 * MB,
        "least above the limit in the last 10 min": 100.0 * MB,
        "the volume came to its limit": 0,
        "throughput in the last 5 min, mean": 4.0 * MB,
        "lowest 10 s of it": 4.0 * MB,
        "highest 10 s of it": 4.0 * MB,
        "lowest factor in the last 10 min": 0.2,
        "highest factor in the last 10 min": 0.2,
        "the factor changed its direction": 0,
        "longest throttle time of a client": 4.0,
        "records given up": 1234,
    }
    assert pytest.approx(expected) == {name: each.value for name, each in found.items()}
    assert holds(made())


def test_throughput_is_that_of_windows_in_the_last_five_minutes() -> None:
    """A burst of 60 MB in a second is 10 MB/s in its window; earlier ones do not count."""
    of = made(minutes=10.0)
    samples, burst_at, end = [], CROSSED + 400.0, CROSSED + 600.0
    for second in range(int(end) + 1):
        at = float(second)
        bursts = 60.0 * ((at > burst_at) + (at > CROSSED + 50.0))
        samples.append((at, (4.0 * at + bursts) * MB))
    of.acknowledged = Series(samples)
    found = figures(of)
    assert 4.2 * MB == pytest.approx(figure(found, "throughput in"))
    assert 4.0 * MB == pytest.approx(figure(found, "lowest 10 s"))
    assert 10.0 * MB == pytest.approx(figure(found, "highest 10 s"))


def test_a_volume_at_its_limit() -> None:
    """At it is enough, whenever it was; the least is that of the last ten minutes."""
    late, early = made(dip=(500.0, LIMIT_BYTES / MB)), made(dip=(150.0, 250.0))
    assert (0.0, 1) == (least_above(late), violations(late))
    assert (100.0 * MB, 1) == (least_above(early), violations(early))
    assert not holds(late)
    assert not holds(early)


def test_a_dip_that_no_sample_has_is_in_the_factor() -> None:
    """0.0 is the limit's alone, and each time that it begins counts once."""
    assert 150 == violations(made(factors=(0.2, 0.0, 0.0, 0.2), minutes=10.0))


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ([], 0),
        ([0.2, 0.2], 0),
        ([1.0, 0.5, 0.3, 0.3], 0),
        ([0.3, 0.25, 0.25, 0.3], 1),
        ([0.3, 0.25, 0.3, 0.3, 0.25], 2),
    ],
)
def test_turns(factors: list[float], expected: int) -> None:
    """Each change from down to up, or from up to down; standing still is neither."""
    assert expected == turns(factors)


def test_a_run_that_never_was_at_the_soft_limit() -> None:
    """It has no figures."""
    of = made()
    of.crossed_at = None
    with pytest.raises(ValueError, match="never was at the soft limit"):
        figures(of)


def test_both_arms_are_in_the_table_and_in_the_picture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The cliff may be at its limit; a slope that is, or that was too short, is a failure."""
    dips: dict[str, tuple[float, float]] = {"cliff": (500.0, 298.0)}

    async def happen(arm: str, watched_s: float) -> Run:
        return made(arm, minutes=watched_s / 60.0, dip=dips.get(arm))

    monkeypatch.setattr(slope, "happen", happen)
    assert 0 == run(slope.BENCHMARK, tmp_path)
    text = page(tmp_path)
    assert list(ARMS.values()) == row(text, "figure")
    assert ["100 MB", "-2.0 MB"] == row(text, "least above the limit in the last 10 min")
    assert ["0 times", "1 times"] == row(text, "the volume came to its limit")
    assert ["4.0 MB/s", "4.0 MB/s"] == row(text, "lowest 10 s")
    said = texts(tmp_path / "page.svg")
    assert [3, 3] == [said.count(name) for name in ARMS.values()]
    assert {"soft limit", "limit", "what is deleted"} <= set(said)
    dips["slope"] = dips["cliff"]
    assert 1 == run(slope.BENCHMARK, tmp_path)
    dips.clear()
    assert 1 == run(slope.BENCHMARK, tmp_path, "--seconds", "120")
    assert "in the last 2 min" in page(tmp_path)
