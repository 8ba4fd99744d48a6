"""The harness: which tasks run, which results stay, and the page with its tables."""

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from benchmarks.clients.__main__ import BENCHMARK as CLIENTS
from benchmarks.enforcement.__main__ import BENCHMARK as ENFORCEMENT
from benchmarks.harness.page import END, begin, fill
from benchmarks.harness.program import Benchmark, Task, task
from benchmarks.harness.results import Results, Sampled
from benchmarks.harness.tables import Value, by_arm, notes, seconds, spread
from benchmarks.harness.traffic import looking
from benchmarks.mutations.__main__ import BENCHMARK as MUTATIONS
from benchmarks.producer_ids.__main__ import BENCHMARK as PRODUCER_IDS
from benchmarks.slope import BENCHMARK as SLOPE
from kafka_lab.series import Series
from sidecar.errors import ClusterError
from tests.benchmarks.pages import page, row, run

pytestmark = pytest.mark.slow


@dataclass
class Run:
    value: float
    samples: Sampled = field(default_factory=Series)
    notes: list[str] = field(default_factory=list)


class Bench:
    """A benchmark whose runs have the values that are named, or an error."""

    def __init__(self) -> None:
        self.values: dict[str, float | Exception] = {"a": 1.0, "b": 2.0}
        self.measured: list[str] = []
        self.holds = True

    def benchmark(self) -> Benchmark:
        return Benchmark(
            "two_arms",
            "Two arms.",
            parts=("one", "two"),
            arms=("a", "b"),
            tasks=self.tasks,
            section=lambda part, results, _: self.section(part, results),
            holds=lambda _: self.holds,
        )

    def tasks(self, asked: argparse.Namespace) -> Iterator[Task]:
        for part in asked.parts:
            for count in range(asked.rounds):
                for arm in asked.arms:
                    yield task(part, arm, count, partial(self.measure, part, arm))

    async def measure(self, part: str, arm: str) -> Run:
        self.measured.append(f"{part} {arm}")
        value = self.values[arm]
        if isinstance(value, Exception):
            raise value
        return Run(value)

    def section(self, part: str, results: Results) -> str:
        found = results.by_arm(Run, part, ("a", "b"))
        figures = {arm: [{"figure": Value(run.value)} for run in of] for arm, of in found.items()}
        return f"## {part}\n\n{by_arm('what', figures)}" if found else ""


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_all_is_measured_and_the_page_has_it(bench: Bench, tmp_path: Path) -> None:
    """Each part has its table; one description of the machine is enough for both."""
    assert 0 == run(bench.benchmark(), tmp_path)
    assert ["one a", "one b", "two a", "two b"] == bench.measured
    assert ["1.00", "2.00"] == row(page(tmp_path).partition("## two")[0], "figure")
    assert 1 <= page(tmp_path).count("Measured on:\n\n- measured on 20") <= 2
    assert '<!-- made by "make bench-two-arms" -->' in page(tmp_path)
    assert {"machine.one.json", "machine.two.json", "settings.json"} < {
        each.name for each in tmp_path.iterdir()
    }


def test_one_that_fails_does_not_stop_the_others(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is shown, the exit code is 1, and no earlier result stands for what failed."""
    assert 0 == run(bench.benchmark(), tmp_path, "--rounds", "2")
    bench.values["a"] = ClusterError("no jar")
    assert 1 == run(bench.benchmark(), tmp_path, "one")
    assert "no jar" in capsys.readouterr().err
    assert {"one.b.0"} == Results(tmp_path).stems("one.*.*"), "round 2 is of another time"
    assert {"two.a.0", "two.a.1", "two.b.0", "two.b.1"} == Results(tmp_path).stems("two.*.*")
    assert ["2.00"] == row(page(tmp_path).partition("## two")[0], "figure")


def test_an_arm_is_measured_alone(bench: Bench, tmp_path: Path) -> None:
    """What was measured before stays beside it."""
    assert 0 == run(bench.benchmark(), tmp_path, "one")
    bench.values["a"] = 7.0
    assert 0 == run(bench.benchmark(), tmp_path, "one", "--arms", "a")
    assert ["7.00", "2.00"] == row(page(tmp_path), "figure")


def test_the_report_alone_measures_nothing(bench: Bench, tmp_path: Path) -> None:
    """What is known of the machine stays."""
    assert 0 == run(bench.benchmark(), tmp_path, "one")
    Results(tmp_path).set_machine("one", ["another machine"])
    bench.measured.clear()
    assert 0 == run(bench.benchmark(), tmp_path, "report")
    assert [] == bench.measured
    assert "- another machine\n" in page(tmp_path)
    bench.holds = False
    assert 1 == run(bench.benchmark(), tmp_path, "report"), "they do not show what they should"


def test_results_of_other_settings_are_not_mixed(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless all of them are measured again."""
    assert 0 == run(bench.benchmark(), tmp_path, "--seconds", "2")
    assert 0 == run(bench.benchmark(), tmp_path, "one", "--seconds", "2")
    with pytest.raises(SystemExit) as ended:
        run(bench.benchmark(), tmp_path, "one", "--seconds", "3")
    assert 2 == ended.value.code
    assert "results of other settings" in capsys.readouterr().err
    assert 0 == run(bench.benchmark(), tmp_path, "--seconds", "3")


@pytest.mark.parametrize(
    "benchmark",
    [CLIENTS, ENFORCEMENT, MUTATIONS, PRODUCER_IDS, SLOPE],
    ids=lambda each: each.name,
)
def test_an_unknown_part_is_refused(benchmark: Benchmark, tmp_path: Path) -> None:
    """The exit code is the usual one, and nothing runs; each program has a page of results."""
    with pytest.raises(SystemExit) as ended:
        run(benchmark, tmp_path, "librdkafka-4")
    assert 2 == ended.value.code
    results = (Path("benchmarks/results") / f"{benchmark.key}.md").read_text()
    assert begin(f"bench-{benchmark.key}") in results


def test_a_page_keeps_its_own_words(tmp_path: Path) -> None:
    """The tables are between two comments; a page without a place for them is left alone."""
    file = tmp_path / "page.md"
    file.write_text(f"# Ours\n{begin('bench-x')}old{END}\nand what to do\n")
    fill(file, "bench-x", "new\n")
    assert f"# Ours\n{begin('bench-x')}\nnew\n{END}\nand what to do\n" == file.read_text()
    with pytest.raises(ValueError, match="no place for the tables"):
        fill(file, "bench-y", "new\n")
    assert "new" in file.read_text()


def test_a_run_goes_to_a_file_and_back(tmp_path: Path) -> None:
    """Series keep their samples, to the millisecond."""
    results = Results(tmp_path)
    results.save("one.a.0", Run(1.5, Series([(0.0, 1.0), (1.23456, 2.0)]), ["a note"]))
    (loaded,) = results.load(Run, "one.a.*")
    assert (1.5, ["a note"]) == (loaded.value, loaded.notes)
    assert [(0.0, 1.0), (1.235, 2.0)] == list(loaded.samples)


def test_of_several_rounds_the_median_is_reported_and_the_range() -> None:
    """One that was not over is a lower bound beside them; unknown ones are left out."""
    rounds = [Value(each, "s") for each in (0.1, 0.3, 0.2)]
    assert "0.20 s (0.10 to 0.30)" == spread([*rounds, Value(None, "s")])
    unseen = [Value(each, "s", is_least=True) for each in (60.0, 90.0)]
    assert "0.20 s (0.10 to 0.30), > 90.0 s" == spread([*rounds, *unseen])
    assert ("> 60.0 s", "", "2,062,146 s") == (
        spread(unseen[:1]),
        spread([Value(None)]),
        spread([Value(2_062_146.0, "s")]),
    )
    assert ["49 ms", "2.31 s", "23.1 s"] == [seconds(each) for each in (0.049, 2.31, 23.1)]


def test_notes_name_their_arm() -> None:
    """Without any there is nothing."""
    assert "" == notes({"ours": [Run(1.0)]})
    noted = Run(1.0, notes=["broker 1 ended by itself"])
    assert "\n- ours: broker 1 ended by itself\n" == notes({"ours": [Run(1.0), noted]})


@pytest.mark.looptime
async def test_looking_keeps_its_pace_and_raises() -> None:
    """What a look raises ends what it is beside."""
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks > 3:
            raise ClusterError("gone")

    with pytest.raises(ExceptionGroup) as raised:
        async with looking(look, 0.0):
            await asyncio.sleep(3600.0)
    assert raised.group_contains(ClusterError, match="gone")
    assert 4 == looks
