"""Has the kernels compiled while Spark starts, the first time on a machine.

Spark's workers would compile them when they first need them, each the same ones, while nothing else
is done. What is stored beside them says that they are compiled; where it is wrong, workers compile.

Example: ``pipeline run`` starts Spark and the compiler at once, and has logs parsed once both are
done; the kernels of the replay are compiled meanwhile.
"""

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from usage_pipeline.cli.options import cache_folder
from usage_pipeline.kernels.sources import SOURCES

_MODULE: Final = "usage_pipeline.cli.kernels"
_NEEDED_BY: Final = {"silver": "parse", "usage": "parse", "replay": "replay"}
_MOST_S: Final = 180.0
"""A worker then compiles for itself."""


class Compiling:
    """What is being compiled."""

    def __init__(self, stamps: Mapping[str, Path], process: "subprocess.Popen[str] | None") -> None:
        """Follows a process.

        Args:
            stamps: of the parts that it compiles: a file that says that it is done.
            process: prints the name of each part that is done; None: nothing is compiled.
        """
        self._stamps = stamps
        self._done = {name: threading.Event() for name in stamps}
        if process is not None:
            threading.Thread(target=self._follow, args=(process,), daemon=True).start()

    @property
    def is_first(self) -> bool:
        """Whether anything is being compiled, as on a machine's first run."""
        return bool(self._done)

    def wait_for(self, stage: str) -> None:
        """Waits until what a stage needs is compiled, or can't be."""
        done = self._done.get(_NEEDED_BY.get(stage, ""))
        if done is not None:
            done.wait(_MOST_S)

    def _follow(self, process: "subprocess.Popen[str]") -> None:
        if process.stdout is not None:
            for line in process.stdout:
                if (name := line.strip()) in self._stamps:
                    with suppress(OSError):
                        self._stamps[name].parent.mkdir(parents=True, exist_ok=True)
                        self._stamps[name].touch()
                    self._done[name].set()
        for each in self._done.values():
            each.set()


@contextmanager
def compiling(stages: Iterable[str], *, is_here: bool) -> Iterator[Compiling]:
    """Compiles what is not compiled yet, in a process that ends with the body at the latest.

    Args:
        stages: that are to be run, by name.
        is_here: whether Spark's workers are on this machine, and of this user.
    """
    stamps = _stamps({_NEEDED_BY[stage] for stage in stages if stage in _NEEDED_BY})
    missing = {name: stamp for name, stamp in stamps.items() if not stamp.exists()}
    if not missing or not is_here:
        yield Compiling({}, None)
        return
    with subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-m", _MODULE, *sorted(missing)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield Compiling(missing, process)
        finally:
            process.kill()


def _stamps(names: Iterable[str]) -> Mapping[str, Path]:
    """The files that say that these kernels are compiled; none where they have no folder."""
    try:
        folder = cache_folder(os.environ)
    except RuntimeError:  # a user without a home folder, as in containers
        return {}
    # What is compiled is stored beside the package, of which there may be several.
    where = (__file__, os.environ.get("NUMBA_CACHE_DIR"))
    own = (sys.version, version("numba"), where, SOURCES)
    key = hashlib.sha256(repr(own).encode()).hexdigest()[:12]
    return {name: folder / f"kernels-{key}-{name}" for name in names}
