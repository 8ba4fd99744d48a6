"""The figures of two courses that are made by hand, the table of them, and the program."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.slope import __main__ as program
from benchmarks.slope.course import Course
from benchmarks.slope.figures import figures, turns, violations
from benchmarks.slope.report import holds, table
from benchmarks.slope.scene import ARMS, Arm
from kafka_lab.series import Series
from sidecar.errors import ClusterError
from tests.benchmarks.pages import row, texts

MB = 1_000_000
CROSSED = 100.0
NAMES = {each.key: each.name for each in ARMS}


def course(
    arm: str = "slope",
    *,
    minutes: float = 12.0,
    dip: tuple[float, float] | None = None,
    factors: tuple[float, ...] = (0.2,),
) -> Course:
    """18 MB/s until the soft limit, then 4 MB/s with 400 MB available, but for a dip (at, MB)."""
    made = Course(arm, 18.0 * MB, 4.0 * MB, 300.0, 2300 * MB, 300 * MB, crossed_at=CROSSED)
    end = CROSSED + 60.0 * minutes
    made.acknowledged = Series(
        [(0.0, 0.0), (CROSSED, 1800.0 * MB), (end, 1800.0 * MB + 240.0 * MB * minutes)]
    )
    for second in range(int(end) + 1):
        at = float(second)
        is_dip = dip is not None and dip[0] == at
        available = dip[1] * MB if is_dip and dip else (2300 if at <= CROSSED else 400) * MB
        made.available.add(at, available)
        made.factor.add(at, 1.0 if at < CROSSED else factors[second % len(factors)])
    made.longest_throttle_s = 4.0
    made.failed_records = 1234
    return made


def test_a_course_that_comes_to_rest() -> None:
    """4 MB/s pass, 100 MB above the limit, and nothing turns."""
    found = figures(course())
    assert (600.0, 100.0 * MB, 0) == (found.rest_s, found.least_above, found.violations)
    assert 18.0 * MB == pytest.approx(found.before)
    assert [4.0 * MB] * 3 == pytest.approx([found.mean, found.lowest, found.highest])
    assert ((0.2, 0.2), 0, 4.0, 1234) == (
        found.factors,
        found.turns,
        found.longest_throttle_s,
        found.failed_records,
    )
    assert holds(course())


def test_throughput_is_that_of_windows_in_the_last_five_minutes() -> None:
    """A burst of 60 MB in a second is 10 MB/s in its window; earlier ones do not count."""
    made = course(minutes=10.0)
    samples, burst_at, end = [], CROSSED + 400.0, CROSSED + 600.0
    for second in range(int(end) + 1):
        at = float(second)
        bursts = 60.0 * ((at > burst_at) + (at > CROSSED + 50.0))
        samples.append((at, (4.0 * at + bursts) * MB))
    made.acknowledged = Series(samples)
    found = figures(made)
    assert 4.2 * MB == pytest.approx(found.mean)
    assert [4.0 * MB, 10.0 * MB] == pytest.approx([found.lowest, found.highest])


def test_a_volume_at_its_limit() -> None:
    """At it is enough, whenever it was; the least is that of the last ten minutes."""
    late, early = course(dip=(500.0, 300.0)), course(dip=(150.0, 250.0))
    assert (0.0, 1) == (figures(late).least_above, figures(late).violations)
    assert (100.0 * MB, 1) == (figures(early).least_above, figures(early).violations)
    assert not holds(late)
    assert not holds(early)


def test_a_dip_that_no_sample_has_is_in_the_factor() -> None:
    """0.0 is the limit's alone, and each time that it begins counts once."""
    made = course(factors=(0.2, 0.0, 0.0, 0.2), minutes=10.0)
    assert 150 == violations(made)


def test_a_course_that_is_too_short_shows_nothing() -> None:
    """Its figures are of what there is."""
    short = course(minutes=2.0)
    assert 120.0 == figures(short).rest_s
    assert not holds(short)


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


def test_a_course_that_never_was_at_the_soft_limit() -> None:
    """It has no figures."""
    made = course()
    made.crossed_at = None
    with pytest.raises(ValueError, match="never was at the soft limit"):
        figures(made)


def test_a_course_goes_to_a_file_and_back(tmp_path: Path) -> None:
    """Its figures are the same."""
    made = course()
    made.save(tmp_path / "slope.json")
    assert figures(made) == figures(Course.load(tmp_path / "slope.json"))


def test_the_table_has_both_arms() -> None:
    """Side by side."""
    text = table([course(), course("cliff", dip=(500.0, 298.0))], NAMES)
    assert ["soft limit and limit", "limit alone"] == row(text, "what")
    assert ["100 MB", "-2.0 MB"] == row(text, "least above the limit in the last 10 min")
    assert ["0 times", "1 times"] == row(text, "the volume came to its limit")
    assert ["4.0 MB/s, 4.0 MB/s"] * 2 == row(text, "lowest and highest 10 s")
    assert ["0.2 to 0.2"] * 2 == row(text, "the factor in")


class TestProgram:
    @pytest.fixture
    def run(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
        """The exit code; arms that come to rest, but for the one that is named."""

        def run(*words: str, fails: str = "", dips: str = "") -> int:
            async def happen(arm: Arm, watched_s: float, _: object) -> Course:
                if arm.key == fails:
                    raise ClusterError("no jar")
                dip = (500.0, 298.0) if arm.key == dips else None
                return course(arm.key, minutes=watched_s / 60.0, dip=dip)

            monkeypatch.setattr(program, "happen", happen)
            options = ["--results", str(tmp_path), "--out", str(tmp_path / "slope.svg")]
            monkeypatch.setattr("sys.argv", ["slope", *options, *words])
            return program.main()

        return run

    def test_it_draws_both(self, run: Callable[..., int], tmp_path: Path) -> None:
        """A line of each in each panel, and the limits; the cliff may be at its limit."""
        assert 0 == run(dips="cliff")
        said = texts(tmp_path / "slope.svg")
        assert [3, 3] == [said.count(name) for name in NAMES.values()]
        assert {"soft limit", "limit", "what is deleted"} <= set(said)

    def test_a_slope_that_does_not_hold_is_a_failure(self, run: Callable[..., int]) -> None:
        """And so is one that was too short to show it."""
        assert 1 == run(dips="slope")
        assert 1 == run("--minutes", "3")

    def test_one_that_fails_does_not_stop_the_other(
        self, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The reason is shown."""
        assert 1 == run(fails="slope")
        output = capsys.readouterr()
        assert "no jar" in output.err
        assert ["limit alone"] == row(output.out, "what")

    def test_the_report_alone_measures_nothing(
        self, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Of what was measured before."""
        assert 0 == run()
        capsys.readouterr()
        assert 0 == run("report", fails="slope")
        assert ["soft limit and limit", "limit alone"] == row(capsys.readouterr().out, "what")
