"""What a worker retains for good, beside its garbage."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.pipeline.ingest.source import Options, RequestLogReader
from sidecar.pipeline.runtime.worker_memory import freeze_retained
from tests.pipeline.growing_logs import line


@pytest.fixture(autouse=True)
def unsettled() -> Iterator[None]:
    """Makes this a process that has had no task yet."""
    gc.unfreeze()
    freeze_retained.cache_clear()
    yield
    gc.unfreeze()


def test_what_is_there_is_left_out_once() -> None:
    """What comes later is garbage collected as ever."""
    freeze_retained()
    frozen = gc.get_freeze_count()
    assert 10_000 < frozen
    later = [[number] for number in range(1_000)]
    freeze_retained()
    assert frozen == gc.get_freeze_count()
    assert any(one is later for one in gc.get_objects())


def test_a_task_of_the_source_does_it_at_its_end(tmp_path: Path) -> None:
    """Not earlier: the task's blocks would stay for good."""
    (tmp_path / "broker-3.log").write_bytes(line(0))
    reader = RequestLogReader(Options.of({"path": str(tmp_path)}))
    (task,) = reader.partitions()
    reading = reader.read(task)
    next(reading)
    assert 0 == gc.get_freeze_count()
    assert [] == list(reading)
    assert 0 < gc.get_freeze_count()
