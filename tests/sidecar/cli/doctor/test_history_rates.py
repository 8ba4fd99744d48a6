"""The highest fill rates of a history: which readings count, and which do not."""

import math
from pathlib import Path

from sidecar.cli.doctor.facts import NotKnown
from sidecar.cli.doctor.history_rates import history_rates
from sidecar.history.folder import Folder
from sidecar.history.volume_line import to_line
from sidecar.settings import Settings
from sidecar.volumes import Observation, Reading, Volume

NOW_S = 1_767_600_000.0
DAY_S = 86_400.0
MB = 1_000_000
TB = 1_000_000 * MB


def write(
    folder: Path, begin_s: float, *sizes: tuple[int, int], origin: str = "a", log_dir: str = "/d"
) -> None:
    """Total and available bytes of a log dir, every minute."""
    for minute, (total, available) in enumerate(sizes):
        at = begin_s + 60 * minute
        reading = Reading(1, at, (Volume(1, log_dir, total, available),))
        line = to_line(Observation(at, origin, None, {1: reading}), origin, at)
        Folder(folder, origin, 1 << 30).append(line, at)


def rates(folder: Path, deadline: float = math.inf) -> dict[tuple[int, str], float] | NotKnown:
    return history_rates(Settings(history_dir=folder), NOW_S, deadline)


def test_a_log_dir_that_comes_back_on_another_disk_begins_anew(tmp_path: Path) -> None:
    """1 MB/s on 2 TB, and then on 1 TB with the same used bytes."""
    used = [500_000 * MB + 60 * MB * minute for minute in range(6)]
    sizes = [(2 * TB if minute < 3 else TB) for minute in range(6)]
    write(tmp_path, NOW_S - 3600, *((a, a - b) for a, b in zip(sizes, used, strict=True)))
    assert {(1, "/d"): 1.0 * MB} == rates(tmp_path)


def test_a_rate_of_more_than_7_days_ago_does_not_count(tmp_path: Path) -> None:
    """The files of that time may be there all the same."""
    write(tmp_path, NOW_S - 7 * DAY_S - 300, *((TB, TB // 2 - 600 * MB * m) for m in range(3)))
    write(tmp_path, NOW_S - 60, (TB, TB // 2), (TB, TB // 2 - 60 * MB))
    assert {(1, "/d"): 1.0 * MB} == rates(tmp_path)


def test_a_total_that_changes_a_little_is_the_same_disk(tmp_path: Path) -> None:
    """A dataset of a pool has less room in all when its neighbours write."""
    course = [(TB - MB * m, TB // 2 - MB * m - 60 * MB * m) for m in range(4)]
    write(tmp_path, NOW_S - 3600, *course)
    assert {(1, "/d"): 1.0 * MB} == rates(tmp_path)


def test_after_a_quiet_time_a_burst_counts_with_its_own_duration(tmp_path: Path) -> None:
    """Equal sizes are readings."""
    write(tmp_path, NOW_S - 7200, *[(TB, TB // 2)] * 30, (TB, TB // 2 - 600 * MB))
    assert {(1, "/d"): 10.0 * MB} == rates(tmp_path)


def test_a_history_that_takes_too_long_is_not_known(tmp_path: Path) -> None:
    """The highest rate of a part may be far below the highest of all."""
    write(tmp_path, NOW_S - 60, (TB, TB // 2), (TB, TB // 2 - 60 * MB))
    assert isinstance(rates(tmp_path, deadline=-math.inf), NotKnown)
