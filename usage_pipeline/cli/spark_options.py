"""Options for Spark: settings, and additional jars for streams.

Example: ``--conf spark.driver.memory=2g`` gives the JVM more memory.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from sidecar.errors import SettingsError

_JARS: Final = "spark.jars"


def _jars(_: click.Context, __: click.Parameter, folders: tuple[Path, ...]) -> tuple[str, ...]:
    jars = tuple(str(jar) for folder in folders for jar in sorted(folder.glob("*.jar")))
    if folders and not jars:
        raise click.BadParameter(f"no jars found in {', '.join(map(str, folders))}")
    return jars


def _pairs(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in texts:
        name, is_pair, value = text.partition("=")
        if not is_pair or not name.startswith("spark."):
            # The message omits the value, which may be a secret.
            raise click.BadParameter(f"{name}: write a setting as spark.name=value")
        pairs.append((name, value))
    return tuple(pairs)


JARS: Final = click.option(
    "--jars",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    callback=_jars,
    help="Folder with additional jars for Spark, such as those of the checkpoint's file system. May"
    " be repeated.",
)
"""Return the paths of the jars."""
CONF: Final = click.option(
    "--conf",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="Spark setting, as in spark-submit. May be repeated. Don't pass secrets, because other"
    " users can see them in the list of processes.",
)
"""Return pairs of name and value."""


def spark_settings(jars: Iterable[str], conf: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the settings of a session.

    Raises:
        SettingsError: both options name jars.
    """
    settings = dict(conf)
    if named := ",".join(jars):
        if _JARS in settings:
            raise SettingsError((f"name jars with --jars or with --conf {_JARS}, but not both",))
        settings[_JARS] = named
    return settings
