"""The kernels' sources, which say whether what was compiled of them is still theirs.

Needs no numba, which takes a second to import.

Example: a file that was saved again has another time, and all is compiled once more.
"""

from pathlib import Path
from typing import Final


def _sources() -> tuple[tuple[str, int, int], ...]:
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *here.parent.parent.joinpath("requestlog").glob("*.py")])
    stats = ((file.name, file.stat()) for file in files)
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


SOURCES: Final = _sources()
"""Name, time of the last change in nanoseconds, and bytes of each."""
