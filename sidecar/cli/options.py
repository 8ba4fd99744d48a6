"""What several commands share: where settings are read from.

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

if TYPE_CHECKING:
    # Not at run time: a command's help needs no settings, and pydantic takes time to import.
    from sidecar.settings import Loaded

_P = ParamSpec("_P")
_R = TypeVar("_R")


def settings_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Give a command the options ``--config`` and ``--properties``.

    The function gets them as ``config: Path | None`` and ``properties: Path | None``. A file
    that is missing is reported by ``load_settings``, with all other problems.
    """
    config = click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A TOML file with settings; properties and the environment win over it.",
    )
    properties = click.option(
        "--properties",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A Java properties file with the Strimzi quota plugin's settings, such as a broker's"
        " server.properties; the environment wins over it.",
    )
    return config(properties(function))


def load_settings(config: Path | None, properties: Path | None) -> "Loaded":
    """Load the settings from the process's environment and the files that were named.

    Raises:
        SettingsError: with every problem found.
    """
    from sidecar.settings import load  # noqa: PLC0415 - see TYPE_CHECKING above

    return load(environ=os.environ, config=config, properties=properties)
