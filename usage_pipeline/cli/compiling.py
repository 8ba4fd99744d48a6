"""Compiles the kernels while Spark starts, the first time on a machine.

Otherwise each of Spark's workers would compile the same kernels when it needs them. Stamp files
mark kernels as compiled. If a stamp is wrong, the workers compile.

Example: ``pipeline run`` starts Spark and the compiler together. It parses logs when both are
ready, while the compiler continues with the kernels of the replay.
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

from sidecar.formats.cache_folder import cache_folder
from usage_pipeline.kernels.sources import SOURCES

_MODULE: Final = "usage_pipeline.cli.kernels"
_NEEDED_BY: Final = {"silver": "parse", "usage": "parse", "replay": "replay"}
_MOST_S: Final = 180.0
"""Longest wait for the compilation, seconds; after it, workers compile by themselves."""


class Compiling:
    """The running compilation."""

    def __init__(self, stamps: Mapping[str, Path], process: "subprocess.Popen[str] | None") -> None:
        """Follows a process.

        Args:
            stamps: the file that marks each part as compiled.
            process: the process that prints the name of each compiled part; None if there is none.
        """
        self._stamps = stamps
        self._done = {name: threading.Event() for name in stamps}
        if process is not None:
            threading.Thread(target=self._follow, args=(process,), daemon=True).start()

    @property
    def is_first(self) -> bool:
        """Whether a compilation is running, as in a machine's first run."""
        return bool(self._done)

    def wait_for(self, stage: str) -> None:
        """Wait until the kernels of a stage are compiled, or the compilation has failed."""
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
    """Compile missing kernels in a process that ends with the body at the latest.

    Args:
        stages: the names of the stages to run.
        is_here: whether Spark's workers run on this machine as this user.
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
    """Return the stamp files of these kernels; none if the kernels have no folder."""
    try:
        folder = cache_folder(os.environ)
    except RuntimeError:  # a user without a home folder, as in containers
        return {}
    # Compiled kernels are stored beside the package, which may be installed several times.
    where = (__file__, os.environ.get("NUMBA_CACHE_DIR"))
    own = (sys.version, version("numba"), where, SOURCES)
    key = hashlib.sha256(repr(own).encode()).hexdigest()[:12]
    return {name: folder / f"kernels-{key}-{name}" for name in names}
