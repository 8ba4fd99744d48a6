"""What the pipeline's commands take for Spark: settings, and for streams jars besides its own.

Example: ``--conf spark.driver.memory=2g`` gives the JVM more memory.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from sidecar.errors import SettingsError

_JARS: Final = "spark.jars"


def _jars(_: click.Context, __: click.Parameter, folders: tuple[Path, ...]) -> tuple[str, ...]:
    found = tuple(str(jar) for folder in folders for jar in sorted(folder.glob("*.jar")))
    if folders and not found:
        raise click.BadParameter(f"there are no jars in {', '.join(map(str, folders))}")
    return found


def _pairs(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    pairs = []
    for one in texts:
        name, is_one, value = one.partition("=")
        if not is_one or not name.startswith("spark."):
            # The value is not repeated: it may be a secret.
            raise click.BadParameter(f"{name}: a setting is written as spark.name=value")
        pairs.append((name, value))
    return tuple(pairs)


JARS: Final = click.option(
    "--jars",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    callback=_jars,
    help="A folder of jars that Spark needs besides its own, such as those of the file system that"
    " the checkpoint is in; may be repeated.",
)
"""The jars' paths."""
CONF: Final = click.option(
    "--conf",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="A setting of Spark's, as spark-submit takes it; may be repeated. No secrets: other users"
    " see them in the list of processes.",
)
"""Pairs of name and value."""


def spark_settings(jars: Iterable[str], conf: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Settings of a session.

    Raises:
        SettingsError: jars are named in both.
    """
    settings = dict(conf)
    if named := ",".join(jars):
        if _JARS in settings:
            raise SettingsError((f"name jars with --jars or with --conf {_JARS}, not with both",))
        settings[_JARS] = named
    return settings
