"""The state of the kernels' sources, which shows whether compiled code is still valid.

This module does not import numba, which takes a second.

Example: a file that was saved again has another time, so all kernels are compiled again.
"""

from pathlib import Path
from typing import Final


def _sources() -> tuple[tuple[str, int, int], ...]:
    stats = ((file.name, file.stat()) for file in sorted(Path(__file__).parent.glob("*.py")))
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


SOURCES: Final = _sources()
"""Name, time of the last change in nanoseconds, and bytes of each."""
