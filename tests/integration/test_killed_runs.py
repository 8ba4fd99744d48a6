"""``pipeline run`` as a process, killed with SIGKILL at random moments over tables on a disk.

A third of the moments is spread over the time that an undisturbed run takes. The others are at its
end: from the last stage's first file, or from the record that decides the run, to somewhat after
the manifest is replaced. Object storage has tests of its own (test_object_storage.py), between two
requests.
"""

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest

from tests.support.kills import kill, seeded, session_of, sidecar, waited_for
from tests.usage_pipeline.build import rows_in
from usage_pipeline.sample import Sample, write_sample
from usage_pipeline.tables.commits import MANIFEST, RECORDS
from usage_pipeline.tables.schemas import GOLD_DISK_FORECAST, TABLES

KILLS: Final = int(os.environ.get("RUN_KILLS", "3"))
"""How often a run is killed; each costs half a run, and the retry a whole one."""
_RUN_S: Final = 400.0
_BEYOND: Final = 1.5
"""How far behind the manifest it may be killed: as a part of the time before it."""

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


class Since(StrEnum):
    """From when on a moment is counted."""

    START = "start"
    LAST_STAGE = "the last stage's first file"
    RECORD = "the record"


Course = dict[Since, float]
"""How long a run may be killed, seconds from each: an undisturbed one's time and somewhat more."""


def moment(course: Course, chance: random.Random) -> tuple[Since, float]:
    """Draws from when on a kill is counted, and how long after."""
    since = chance.choice(list(Since))
    return since, chance.uniform(0, course[since])


def seen_in(out: Path, since: Since) -> Callable[[], bool]:
    """What tells whether a run that begins now is so far."""
    if since is Since.START:
        return lambda: True
    folder, name = {
        Since.LAST_STAGE: (out / GOLD_DISK_FORECAST.name, "**/*.parquet"),
        # Record 0 marks a new folder, before anything is written.
        Since.RECORD: (out / RECORDS, "*[1-9].json"),
    }[since]
    before = set(folder.glob(name))
    return lambda: not before.issuperset(folder.glob(name))


def replaced(file: Path) -> Callable[[], bool]:
    """What tells whether a file is another one than now."""
    before = file.stat().st_ino if file.exists() else 0
    return lambda: file.exists() and file.stat().st_ino != before


def undisturbed(out: Path, words: list[str]) -> Course:
    """Runs to the end."""
    reached = [seen_in(out, since) for since in (Since.LAST_STAGE, Since.RECORD)]
    reached.append(replaced(out / MANIFEST))
    said = out.with_suffix(".log")
    begun = time.monotonic()
    with session_of(sidecar(*words, "--out", str(out)), said) as process:
        times = []
        for happened in reached:
            assert waited_for(process, happened, _RUN_S), said.read_text()
            times.append(time.monotonic())
        assert 0 == process.wait(_RUN_S), said.read_text()
    last_stage, record, manifest = times
    return {
        Since.START: time.monotonic() - begun,
        Since.LAST_STAGE: (manifest - last_stage) * _BEYOND,
        Since.RECORD: (manifest - record) * _BEYOND,
    }


def killed(out: Path, words: list[str], since: Since, after_s: float) -> None:
    """Runs until a moment; a run that was quicker has ended."""
    reached, said = seen_in(out, since), out.with_suffix(".log")
    with session_of(sidecar(*words, "--out", str(out)), said) as process:
        assert waited_for(process, reached, _RUN_S), said.read_text()
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
    same = {name for name in old if old[name] == new[name]}
    assert same <= {"quarantine", "gold_cost"}
    print(f"seconds in which it is killed: {course}")

    seen: Counter[str] = Counter()
    for number in range(KILLS):
        is_retry = number % 3 == 2
        if not is_retry:
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(first, out)
        since, after_s = moment(course, chance)
        # What a reader has seen of this run never goes back.
        good = {"new": new} if is_retry and tables_of(out) == new else {"old": old, "new": new}
        killed(out, later, since, after_s)
        found = tables_of(out)
        states = [state for state, tables in good.items() if tables == found]
        where = f"kill {number}, {after_s:.3f} s after {since}"
        records = sorted(record.stem.lstrip("0") for record in (out / RECORDS).iterdir())
        print(f"{where}: {states or 'BROKEN'}, records {records}")
        assert states, where
        assert (out / "report.html").read_text().rstrip().endswith("</html>"), where
        seen[states[0]] += 1
        if number % 3 != 1 or number == KILLS - 1:
            undisturbed(out, later)
            assert new == tables_of(out), where
    print(f"{KILLS} kills: {dict(seen)}")
