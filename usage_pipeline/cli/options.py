"""Helpers for the options of several commands."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from sidecar.formats.gathered_options import finite, read_by
from sidecar.formats.quantities import parse_duration, parse_size

_R = TypeVar("_R")


class Size(click.ParamType[int]):
    """Bytes as people write them: 100MB, 10Gi."""

    name = "size"

    def __init__(self, lowest: int = 1) -> None:
        self._lowest = lowest

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Bytes; refuses what is not a size."""
        try:
            count = parse_size(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if count < self._lowest:
            self.fail(f"{value!r} is less than {self._lowest} bytes", param, ctx)
        return count


class Duration(click.ParamType[float]):
    """Seconds as people write them: 30s, 1h30m, PT30M."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds, > 0; refuses what is not a duration."""
        if isinstance(value, float):
            return value  # which this has made
        try:
            seconds = parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds == 0.0:
            self.fail(f"{value!r} must be longer than nothing", param, ctx)
        return seconds


def shown(
    name: str,
    kind: click.ParamType[Any] | type,
    default: object,
    text: str,
    **more: Any,  # noqa: ANN401 - click's own
) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Create an option whose help shows its default; nan and infinity are refused."""
    if isinstance(kind, click.FloatRange):
        more.setdefault("callback", read_by(finite, click.BadParameter, ValueError))
    return click.option(name, type=kind, default=default, show_default=True, help=text, **more)
