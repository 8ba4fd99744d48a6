"""Compiles the kernels while Spark starts, the first time on a machine.

Otherwise each of Spark's workers would compile the same kernels when it needs them. A stamp file
marks the kernels as compiled. If it is wrong, the workers compile.

Example: ``pipeline run`` starts Spark and the compiler together. Logs are parsed meanwhile, and the
replay begins when both are done.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from sidecar.formats.cache_folder import cache_folder
from usage_pipeline.kernels.sources import SOURCES

_MODULE: Final = "usage_pipeline.cli.kernels"
_STAGE: Final = "replay"
"""The stage that needs the kernels."""
_MOST_S: Final = 180.0
"""Longest wait for the compilation, seconds; after it, workers compile by themselves."""


@contextmanager
def compiling(stages: Collection[str], *, is_here: bool) -> Iterator[Callable[[str], None]]:
    """Compile missing kernels in a process that ends with the body at the latest.

    Args:
        stages: the names of the stages to run.
        is_here: whether Spark's workers run on this machine as this user.

    Yields:
        A function that waits until the kernels of a stage are compiled, or the compilation has
        failed.
    """
    stamp = _stamp()
    if _STAGE not in stages or not is_here or stamp is None or stamp.exists():
        yield lambda _: None
        return
    with subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-m", _MODULE],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    ) as process:

        def wait_for(stage: str) -> None:
            if stage == _STAGE:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_MOST_S)

        try:
            yield wait_for
        finally:
            if process.poll() == 0:
                with suppress(OSError):
                    stamp.parent.mkdir(parents=True, exist_ok=True)
                    stamp.touch()
            process.kill()


def _stamp() -> Path | None:
    """Return the file that marks the kernels as compiled; None if there is no folder for it."""
    try:
        folder = cache_folder(os.environ)
    except RuntimeError:  # a user without a home folder, as in containers
        return None
    # Compiled kernels are stored beside the package, which may be installed several times.
    where = (__file__, os.environ.get("NUMBA_CACHE_DIR"))
    own = (sys.version, version("numba"), where, SOURCES)
    return folder / f"kernels-{hashlib.sha256(repr(own).encode()).hexdigest()[:12]}"
