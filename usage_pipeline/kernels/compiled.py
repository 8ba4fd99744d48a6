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
from typing import Any, ParamSpec, TypeVar, cast

from numba import __version__ as version
from numba import config, njit

from usage_pipeline.kernels.sources import SOURCES

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _kept(made: Any) -> Any:  # noqa: ANN401  numba's own
    """A cache that is valid only while the sources of all kernels are unchanged.

    Numba itself checks only the file of the function, not the files of inlined functions.
    """
    # Set as the version, because the rest of the index is unpickled before stamps are compared, and
    # classes of another release may no longer exist.
    made._cache._cache_file._version = (version, SOURCES)  # noqa: SLF001  there is no other way
    return made


def _in_executor(function: Callable[_P, _R]) -> Any:  # noqa: ANN401  as above
    """Compile with a cache in the executor's folder, or without one if there is no folder."""
    folders = os.environ.get("SPARK_LOCAL_DIRS")
    if not folders:
        return njit(nogil=True)(function)
    settings: Any = config
    settings.CACHE_DIR = str(Path(folders.split(",")[0]) / "kernels")
    try:
        return _kept(njit(cache=True, nogil=True)(function))
    except RuntimeError:  # the folder can't be written to
        return njit(nogil=True)(function)


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function; it runs without the interpreter's lock."""
    try:
        made = _kept(njit(cache=True, nogil=True)(function))
    except RuntimeError:  # numba found no folder for its cache
        made = _in_executor(function)
    return cast("Callable[_P, _R]", made)


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function into each kernel that calls it, for a few lines that run for each charge.

    A call would cost more than these lines.
    """
    return cast("Callable[_P, _R]", njit(inline="always", nogil=True)(function))
