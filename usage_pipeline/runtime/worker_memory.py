"""What a worker retains for good is left out of its garbage collection.

PySpark has a worker collect garbage after each task. With all that the pipeline imports that takes
40 ms each time, as long as many a task, and nothing of it is garbage.

Example: a reading in 96 tasks has 4 s of them.
"""

import gc
import sys
from functools import lru_cache


def freeze_retained() -> None:
    """Leaves out what is there now, if modules were imported since it was called last.

    To be called at the end of a task, when what is there is what the worker retains. A worker does
    the tasks of several stages, each of which imports what it needs.
    """
    _freeze(len(sys.modules))


@lru_cache(maxsize=1)
def _freeze(_modules: int) -> None:
    """Once for each number of modules."""
    gc.collect()
    gc.freeze()
