"""Helpers for the options of several commands."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

_R = TypeVar("_R")


def cache_folder(environ: Mapping[str, str]) -> Path:
    """``throttle-sidecar`` in the XDG base directory for caches.

    Raises:
        RuntimeError: the user has no home folder, as in containers.
    """
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    # The specification requires that a relative path is ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "throttle-sidecar"


def gathered(
    function: Callable[..., _R],
    name: str,
    kind: Callable[..., Any],
    *options: Callable[[Callable[..., _R]], Callable[..., _R]],
) -> Callable[..., _R]:
    """Pass options to a command as one argument ``name`` of the dataclass ``kind``."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]  # a dataclass's class

    @functools.wraps(function)
    def call(*args: Any, **values: Any) -> _R:  # noqa: ANN401 - the command's own arguments
        mine = {each: values.pop(each) for each in names if each in values}
        return function(*args, **{name: kind(**mine)}, **values)

    for option in reversed(options):
        call = option(call)
    return call


def shown(
    name: str,
    kind: click.ParamType[Any] | type,
    default: object,
    text: str,
    **more: Any,  # noqa: ANN401 - click's own
) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Create an option whose help shows its default."""
    return click.option(name, type=kind, default=default, show_default=True, help=text, **more)
