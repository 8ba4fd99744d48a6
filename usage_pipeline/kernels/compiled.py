"""How kernels are compiled: to machine code on the first call, cached on disk if possible.

Spark's workers are processes of their own: without the copy on disk each would compile for seconds.
It is cached where numba caches it: beside the package, or in the home folder. An executor in an
image may be able to write to neither; there it is in the folder of the executor's blocks, which all
its workers share, and which Spark removes at the end. Without that too, each process compiles.

Example: ``rates`` is compiled in 2 s once, and loaded in 20 ms by the next process.

Source: numba.core.caching; org.apache.spark.api.python.BasePythonRunner for SPARK_LOCAL_DIRS.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

from numba import __version__ as version
from numba import config, njit

from usage_pipeline.kernels.sources import SOURCES

_P = ParamSpec("_P")
_R = TypeVar("_R")
_UNCOUNTED: Final[dict[str, Any]] = {"nogil": True, "_nrt": False}
"""Numba's runtime, which counts who uses an array, is left out."""


def _kept(made: Any) -> Any:  # noqa: ANN401  numba's own
    """With a copy that is used only as long as no kernel's source has changed.

    Numba itself looks at the file of the function alone, not at what is merged into it.
    """
    # As a version, since what follows it in the index is unpickled before stamps are compared, and
    # the classes of another release may be gone.
    made._cache._cache_file._version = (version, SOURCES)  # noqa: SLF001  there is no other way
    return made


def _in_executor(function: Callable[_P, _R], options: dict[str, Any]) -> Any:  # noqa: ANN401  as above
    """Compiled, with its copy in the executor's own folder; without one where there is none."""
    folders = os.environ.get("SPARK_LOCAL_DIRS")
    if not folders:
        return njit(**options)(function)
    settings: Any = config
    settings.CACHE_DIR = str(Path(folders.split(",")[0]) / "kernels")
    try:
        return _kept(njit(cache=True, **options)(function))
    except RuntimeError:  # it can't be written to
        return njit(**options)(function)


def _made(function: Callable[_P, _R], options: dict[str, Any]) -> Callable[_P, _R]:
    try:
        made = _kept(njit(cache=True, **options)(function))
    except RuntimeError:  # numba has no place for it
        made = _in_executor(function, options)
    return cast("Callable[_P, _R]", made)


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function as machine code; it holds no lock of the interpreter while it runs."""
    return _made(function, {"nogil": True})


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same, as a part of each kernel that calls it: for the few lines that run for each charge.

    A call of its own costs more than they do.
    """
    return cast("Callable[_P, _R]", njit(inline="always", nogil=True)(function))


def merged(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same, by LLVM rather than from its source: for parts with loops and several ends.

    They can't make arrays, so that none is counted as used and no longer used: at some ten parts
    for each field of a line that would take most of the time.
    """
    return cast("Callable[_P, _R]", njit(forceinline=True, **_UNCOUNTED)(function))


def walking(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """As ``compiled``, for a kernel of ``merged`` parts."""
    return _made(function, _UNCOUNTED)
