"""Options that several commands share: the settings' files and durations.

Example::

    @click.command("check")
    @settings_options
    def command(config: Path | None, properties: Path | None) -> None:
        loaded = load_settings(config, properties)
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from sidecar.formats.gathered_options import read_by
from sidecar.formats.quantities import parse_duration

if TYPE_CHECKING:
    # Not at run time: a command's help needs no settings, and pydantic takes time to import.
    from sidecar.settings import Loaded

_P = ParamSpec("_P")
_R = TypeVar("_R")


def settings_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Give a command the options ``--config`` and ``--properties``.

    The function gets them as ``config: Path | None`` and ``properties: Path | None``. If a file is
    missing, ``load_settings`` reports it together with all other problems.
    """
    config = click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A TOML file with settings. The properties file and the environment override it.",
    )
    properties = click.option(
        "--properties",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A Java properties file with the settings of Strimzi's quotas plugin, such as a"
        " broker's server.properties. The environment overrides it.",
    )
    return config(properties(function))


def load_settings(config: Path | None, properties: Path | None) -> "Loaded":
    """Load the settings from the process's environment and from the named files."""
    from sidecar.settings import load  # noqa: PLC0415 - see TYPE_CHECKING above

    return load(environ=os.environ, config=config, properties=properties)


def duration(zero: str | None = None) -> Callable[[object, object, str], float | None]:
    """A callback that reads a duration (30s, 1h30m, PT30M) as seconds.

    Args:
        zero: why 0 s is refused; None accepts it.
    """

    def parse(text: str) -> float:
        seconds = parse_duration(text)
        if seconds == 0 and zero is not None:
            raise ValueError(zero)
        return seconds

    return read_by(parse, click.BadParameter, ValueError)
