"""Compiles kernels to machine code on the first call, with a cache on disk if possible.

Spark's workers are separate processes. Without the cache, each would compile for seconds. Numba's
cache is beside the package or in the home folder. An executor in an image may be unable to write to
either. Then the cache is in the executor's folder for blocks, which all its workers share and which
Spark removes at the end. If that is not possible either, each process compiles.

Example: ``rates`` is compiled once in 2 s. The next process loads it in 20 ms.

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
"""Compile without numba's runtime, which counts references to arrays."""


def _kept(made: Any) -> Any:  # noqa: ANN401  numba's own
    """A cache that is valid only while the sources of all kernels are unchanged.

    Numba itself checks only the file of the function, not the files of merged functions.
    """
    # Set as the version, because the rest of the index is unpickled before stamps are compared, and
    # classes of another release may no longer exist.
    made._cache._cache_file._version = (version, SOURCES)  # noqa: SLF001  there is no other way
    return made


def _in_executor(function: Callable[_P, _R], options: dict[str, Any]) -> Any:  # noqa: ANN401  as above
    """Compile with a cache in the executor's folder, or without one if there is no folder."""
    folders = os.environ.get("SPARK_LOCAL_DIRS")
    if not folders:
        return njit(**options)(function)
    settings: Any = config
    settings.CACHE_DIR = str(Path(folders.split(",")[0]) / "kernels")
    try:
        return _kept(njit(cache=True, **options)(function))
    except RuntimeError:  # the folder can't be written to
        return njit(**options)(function)


def _made(function: Callable[_P, _R], options: dict[str, Any]) -> Callable[_P, _R]:
    try:
        made = _kept(njit(cache=True, **options)(function))
    except RuntimeError:  # numba found no folder for its cache
        made = _in_executor(function, options)
    return cast("Callable[_P, _R]", made)


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function; it runs without the interpreter's lock."""
    return _made(function, {"nogil": True})


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function into each kernel that calls it, for a few lines that run for each charge.

    A call would cost more than these lines.
    """
    return cast("Callable[_P, _R]", njit(inline="always", nogil=True)(function))


def merged(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let LLVM inline a function instead of numba, for parts with loops and several returns.

    Such a function can't make arrays, so that no references are counted. With about ten calls for
    each field of a line, counting would take most of the time.
    """
    return cast("Callable[_P, _R]", njit(forceinline=True, **_UNCOUNTED)(function))


def walking(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Do the same as ``compiled``, for a kernel of ``merged`` parts."""
    return _made(function, _UNCOUNTED)
