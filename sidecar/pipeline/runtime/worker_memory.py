"""What a worker retains for good is left out of its garbage collection.

PySpark has a worker collect garbage after each task. With all that the pipeline imports that takes
40 ms each time, as long as many a task, and nothing of it is garbage.

Example: a reading in 96 tasks has 4 s of them.
"""

import gc
from functools import cache


@cache
def freeze_retained() -> None:
    """Leaves out what is there now; the first time that it is called in a process.

    To be called at the end of a task, when what is there is what the worker retains.
    """
    gc.collect()
    gc.freeze()
