"""What a worker retains for good, beside its garbage."""

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from usage_pipeline.runtime import worker_memory
from usage_pipeline.runtime.worker_memory import freeze_retained


@pytest.fixture(autouse=True)
def unsettled() -> Iterator[None]:
    """Makes this a process that has had no task yet."""
    gc.unfreeze()
    worker_memory._freeze.cache_clear()
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.slow
def test_what_is_there_is_left_out_once() -> None:
    """Later objects are garbage collected, but not for each few hundred of them."""
    freeze_retained()
    assert 10_000 < gc.get_freeze_count()
    assert 8_000 < gc.get_threshold()[0]
    later = [[number] for number in range(1_000)]
    freeze_retained()
    assert any(one is later for one in gc.get_objects())


@pytest.mark.slow
def test_modules_that_a_later_stage_imports_are_left_out_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker does the tasks of all stages."""
    freeze_retained()
    later = ModuleType("a_later_stage")
    monkeypatch.setitem(sys.modules, later.__name__, later)
    freeze_retained()
    assert not any(one is later for one in gc.get_objects())
