"""Excludes what a worker retains for good from garbage collection.

PySpark collects garbage in a worker after each task. With all the modules that the pipeline
imports, a collection takes 40 ms, as long as many tasks, and finds nothing.

Example: reading in 96 tasks would spend 4 s on it.
"""

import gc
import sys
from functools import lru_cache


def freeze_retained() -> None:
    """Exclude the present objects, if modules were imported since the last call.

    Call this at the end of a task, when the present objects are those that the worker retains. A
    worker runs tasks of several stages, and each stage imports the modules that it needs.
    """
    _freeze(len(sys.modules))


@lru_cache(maxsize=1)
def _freeze(_modules: int) -> None:
    """Run once for each number of modules."""
    gc.collect()
    gc.freeze()
