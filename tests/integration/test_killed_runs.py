"""``pipeline run`` as a process, killed with SIGKILL at random moments over tables on a disk.

Half of the moments are spread over the time that an undisturbed run takes; the others are at its
end, from the last stage's first file to somewhat after the manifest is replaced, where it commits.
Object storage has its own test (test_object_storage.py), at four places of a commit.
"""

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from sidecar.pipeline.sample import Sample, write_sample
from sidecar.pipeline.tables.commits import MANIFEST
from sidecar.pipeline.tables.schemas import GOLD_DISK_FORECAST, TABLES
from tests.pipeline.build import rows_in
from tests.support.kills import kill, seeded, session_of, sidecar, waited_for

KILLS: Final = int(os.environ.get("RUN_KILLS", "3"))
"""How often a run is killed; each costs half a run, and the retry a whole one."""
_RUN_S: Final = 400.0
_BEYOND: Final = 1.5
"""How long after the manifest it may be killed: as a part of the end before it."""

pytestmark = pytest.mark.timeout(600 + 240 * KILLS)

Tables = dict[str, Counter[tuple[str, ...]]]


def tables_of(out: Path) -> Tables:
    """The rows of all tables as a reader sees them, without the last digits of sums."""
    return {
        table.name: Counter(
            tuple(
                f"{row[name]:.9g}" if isinstance(row[name], float) else str(row[name])
                for name in table.names
            )
            for row in rows_in(out, table)
        )
        for table in TABLES
    }


@dataclass(frozen=True, slots=True)
class Course:
    """How long an undisturbed run takes, seconds.

    Attributes:
        whole: until its process has ended.
        end: from the last stage's first file to the manifest.
    """

    whole: float
    end: float

    def moment(self, chance: random.Random) -> tuple[bool, float]:
        """Draws whether a kill is counted from the end's beginning, and how long after."""
        is_end = chance.random() < 0.5
        return is_end, chance.uniform(0, self.end * _BEYOND if is_end else self.whole)


def ends(out: Path) -> Callable[[], bool]:
    """What tells whether a run that begins now has written a file of its last stage."""
    folder = out / GOLD_DISK_FORECAST.name
    before = set(folder.rglob("*.parquet"))
    return lambda: not before.issuperset(folder.rglob("*.parquet"))


def replaced(file: Path) -> Callable[[], bool]:
    """What tells whether a file is another one than now."""
    before = file.stat().st_ino if file.exists() else 0
    return lambda: file.exists() and file.stat().st_ino != before


def undisturbed(out: Path, words: list[str]) -> Course:
    """Runs to the end."""
    last_stage, manifest = ends(out), replaced(out / MANIFEST)
    said = out.with_suffix(".log")
    begun = time.monotonic()
    with session_of(sidecar(*words, "--out", str(out)), said) as process:
        assert waited_for(process, last_stage, _RUN_S), said.read_text()
        ending = time.monotonic()
        assert waited_for(process, manifest, _RUN_S), said.read_text()
        committed = time.monotonic()
        assert 0 == process.wait(_RUN_S), said.read_text()
    return Course(time.monotonic() - begun, committed - ending)


def killed(out: Path, words: list[str], *, is_end: bool, after_s: float) -> None:
    """Runs until a moment; a run that was quicker has ended."""
    last_stage, said = ends(out), out.with_suffix(".log")
    with session_of(sidecar(*words, "--out", str(out)), said) as process:
        if is_end:
            assert waited_for(process, last_stage, _RUN_S), said.read_text()
        until = time.monotonic() + after_s
        waited_for(process, lambda: time.monotonic() > until, _RUN_S)
        kill(process)


def words_of(folder: Path, seed: int, size_bytes: int, days: int) -> list[str]:
    """A run over made-up logs of a day, its history, quotas and capacity."""
    sample = write_sample(
        folder, Sample(size_bytes, seed=seed, brokers=2, hours=0.2, history_days=days)
    )
    return [
        *("pipeline", "run", "--candidates", "2", "--master", "local[2]"),
        *("--request-logs", str(sample.request_logs), "--volumes", str(sample.volumes)),
        *("--quotas", str(sample.quotas), "--capacity", str(sample.capacity)),
    ]


def test_a_run_that_is_killed_at_any_moment_leaves_a_good_state(tmp_path: Path) -> None:
    """A reader has all tables of the run before or all of this one; a retry makes the latter.

    Every third retry is killed too, so that a run which finishes another is.
    """
    chance = seeded()
    earlier = words_of(tmp_path / "earlier", 1, 300_000, 1)
    later = words_of(tmp_path / "later", 2, 400_000, 2)
    first, again, out = tmp_path / "first", tmp_path / "again", tmp_path / "tables"
    undisturbed(first, earlier)
    old = tables_of(first)
    shutil.copytree(first, again)
    course = undisturbed(again, later)
    new = tables_of(again)
    assert [] == [name for name in old if name != "quarantine" and old[name] == new[name]]
    print(f"undisturbed: {course.whole:.1f} s, of which {course.end:.2f} s are the end")

    seen: Counter[str] = Counter()
    for number in range(KILLS):
        is_retry = number % 3 == 2
        if not is_retry:
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(first, out)
        is_end, after_s = course.moment(chance)
        # What a reader has seen of this run never goes back.
        good = {"new": new} if is_retry and tables_of(out) == new else {"old": old, "new": new}
        killed(out, later, is_end=is_end, after_s=after_s)
        found = tables_of(out)
        states = [state for state, tables in good.items() if tables == found]
        where = f"kill {number}, {after_s:.3f} s after {'the last stage' if is_end else 'start'}"
        records = sorted(record.name for record in (out / "_commits").iterdir())
        print(f"{where}: {states or 'BROKEN'}, records {records}")
        assert states, where
        assert (out / "report.html").read_text().rstrip().endswith("</html>"), where
        seen[states[0]] += 1
        if number % 3 != 1 or number == KILLS - 1:
            undisturbed(out, later)
            assert new == tables_of(out), where
    print(f"{KILLS} kills: {dict(seen)}")
