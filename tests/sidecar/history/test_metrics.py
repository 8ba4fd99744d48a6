"""The metrics of the volume history."""

from pathlib import Path

from sidecar.history import Folder, History
from sidecar.history.metrics import history_metrics
from tests.support.scripted import reading, whole

WALL_S = 1_767_600_000.0
"""2026-01-05T08:00:00Z, when the steady clock is at 0."""


def reported(history: History | None) -> dict[str, float]:
    return {
        sample.name.removeprefix("kafka_throttle_history_"): sample.value
        for family in history_metrics(history)
        for sample in family.samples
    }


def test_all_are_there_without_a_history() -> None:
    """Each is 0."""
    expected = ("observations_total", "lost_total", "removed_files_total", "bytes")
    assert dict.fromkeys(expected, 0.0) == reported(None)


async def test_they_are_those_of_the_history(tmp_path: Path) -> None:
    """An old hour goes for a line; two more lines find no folder."""
    for hour in range(2):
        (tmp_path / f"volumes-z-20260105T0{hour}.jsonl.gz").write_bytes(b"x" * 200)
    history = History(Folder(tmp_path, "k", 450), lambda steady_s: WALL_S + steady_s)
    history.record(whole(0.0, reading(0.0, 1, 5)))
    await history.flush()
    size = (tmp_path / "volumes-k-20260105T08.jsonl").stat().st_size
    history.folder.path = tmp_path / "gone"
    for second in (1.0, 2.0):
        history.record(whole(second, reading(second, 1, 5)))
    await history.flush()
    expected = {
        "observations_total": 1.0,
        "lost_total": 2.0,
        "removed_files_total": 1.0,
        "bytes": 200.0 + size,
    }
    assert expected == reported(history)
