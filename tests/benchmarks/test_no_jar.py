"""The figures of a throttle without a jar, of runs that are made by hand, and the program."""

from pathlib import Path

import pytest

from benchmarks import no_jar
from benchmarks.enforcement.scene import Run
from benchmarks.no_jar import Arm, Rest, Scenario, figures
from kafka_lab.series import Series
from tests.benchmarks.pages import counted, figure, page, row, run, texts

pytestmark = pytest.mark.slow

MB = 1_000_000
ROOM = 3000 * MB
BEGUN, FREED = 100.0, 220.0
LANDED = ((BEGUN, 18.0 * MB), (160.0, 9.0 * MB), (FREED, 1.8 * MB))


def made(*back: tuple[float, float], crossed_at: float | None = BEGUN) -> Run:
    """18 MB/s until 1.08 GB above the limit, then 9 MB/s for a minute, and 1.8 MB/s for another."""
    of = Run(6, ROOM, crossed_at=crossed_at, freed_at=FREED, longest_throttle_s=5.5)
    of.acknowledged = counted(*LANDED, *back, step=0.5)
    of.stored = counted(*LANDED, step=0.5)
    of.available = Series((at, 5880 * MB - value) for at, value in of.stored)
    return of


def test_minutes_count_from_the_moment_at_which_the_throttle_was_to_begin() -> None:
    """648 MB land after it, of which 540 in the first minute; the third was not watched."""
    found = figures(made((260.0, 18.0 * MB)))
    expected = {"1st": 50.0, "2nd": 10.0, "3rd": None}
    for word, share in expected.items():
        assert pytest.approx(share) == figure(found, f"landed in the {word} minute")
    assert pytest.approx(0.0) == figure(found, "past the limit")
    assert 5.5 == figure(found, "longest throttle time")


def test_what_landed_past_the_limit() -> None:
    """The least that was free until space was freed counts."""
    of = made((260.0, 18.0 * MB))
    of.available = Series([(BEGUN, 4080.0 * MB), (FREED - 0.1, 2850.0 * MB), (FREED + 1.0, 0.0)])
    assert pytest.approx(150.0) == figure(figures(of), "past the limit")


@pytest.mark.parametrize(
    ("back", "expected"),
    [
        # A burst of 36 MB is 90 % of 2 s, and not of 10 s.
        ([(222.0, 18.0 * MB), (240.0, 1.8 * MB), (270.0, 18.0 * MB)], 19.0),
        ([(270.0, 18.0 * MB)], 0.0),
        ([(270.0, 1.8 * MB)], None),
    ],
)
def test_back(back: list[tuple[float, float]], expected: float | None) -> None:
    """The first 10 s that have 90 %; a producer that does not come back is watched to the end."""
    value = figures(made(*back))["from space freed to 90 % of before"]
    assert (expected is None) == value.is_least
    assert pytest.approx(50.0 if expected is None else expected, abs=0.5) == value.value


def test_a_volume_that_never_was_at_its_limit() -> None:
    """It has no figures."""
    with pytest.raises(ValueError, match="never was at its limit"):
        figures(made(crossed_at=None))


def test_every_arm_is_in_the_tables_and_in_the_pictures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The plugin has no soft limit, and only client quotas are read and changed at rest."""

    async def happen(_scenario: Scenario, _arm: Arm, _watched_s: float) -> Run:
        return made((260.0, 18.0 * MB))

    async def rest(_arm: Arm, seconds: float) -> Rest:
        return Rest(seconds, reads=20, changes=0)

    monkeypatch.setattr(no_jar, "happen", happen)
    monkeypatch.setattr(no_jar, "rest", rest)
    assert 0 == run(no_jar.BENCHMARK, tmp_path)
    soft, limit, at_rest = (text.partition("\n\n")[2] for text in page(tmp_path).split("\n## ")[1:])
    sources = ("4.3.1", "3.9.1", "request log", "brokers' metrics")
    names = [*(f"client quotas, {each}" for each in sources), "quota callback"]
    assert ["wanted", *names] == row(soft, "figure")
    assert ["wanted", *names, "Strimzi's plugin 0.3.1"] == row(limit, "figure")
    assert ["≤ 5 %", *["10.0 %"] * 5] == row(soft, "landed in the 2nd minute")
    assert ["0 MB", *["0 MB"] * 5] == row(soft, "past the limit")
    assert ["≤ 150 MB", *["0 MB"] * 6] == row(limit, "past the limit")
    assert ["≤ 4", "2.0", "2.0"] == row(at_rest, "quotas read")
    assert {*names, "freed", "limit", "the throttle begins"} <= set(
        texts(tmp_path / "page-soft.svg")
    )
