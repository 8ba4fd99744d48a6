"""How kernels are compiled: to machine code on the first call, kept on disk where that is possible.

Spark's workers are processes of their own: without the copy on disk each would compile for seconds.
A package that is neither in a folder that can be written to nor on a machine with a home folder has
no place for it, and compiles in each worker.

Example: ``rates`` is compiled in 2 s once, and loaded in 20 ms by the next process.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

from numba import njit

_P = ParamSpec("_P")
_R = TypeVar("_R")
_UNCOUNTED: Final[dict[str, Any]] = {"nogil": True, "_nrt": False}
"""Numba's runtime, which counts who uses an array, is left out."""


def _sources() -> tuple[tuple[str, int, int], ...]:
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *here.parent.parent.joinpath("requestlog").glob("*.py")])
    told = ((file.name, file.stat()) for file in files)
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in told)


_SOURCES: Final = _sources()


def _kept(made: Any) -> Any:  # noqa: ANN401  numba's own
    """With a copy that is used only as long as no kernel's source has changed.

    Numba itself looks at the file of the function alone, not at what is merged into it.
    """
    made._cache._cache_file._source_stamp = _SOURCES  # noqa: SLF001  there is no other way
    return made


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function as machine code; it holds no lock of the interpreter while it runs."""
    try:
        made = _kept(njit(cache=True, nogil=True)(function))
    except RuntimeError:  # there is no place to keep it
        made = njit(nogil=True)(function)
    return cast("Callable[_P, _R]", made)


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
    try:
        made = _kept(njit(cache=True, **_UNCOUNTED)(function))
    except RuntimeError:  # there is no place to keep it
        made = njit(**_UNCOUNTED)(function)
    return cast("Callable[_P, _R]", made)
