"""Which topics a command is about: named one by one, or in a file of thousands.

Example: a file with the lines ``orders`` and ``bills 12`` names two topics, the second one with a
number of partitions of its own. Blank lines and those that begin with # are passed over.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class NamedTopic:
    """A topic as it was named.

    Attributes:
        name: not empty.
        partitions: as in the file; None: it has none.
    """

    name: str
    partitions: int | None = None


def names_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``topics: tuple[str, ...]`` and ``names_file: Path | None``."""
    topics = click.argument("topics", nargs=-1, metavar="[TOPIC]...")
    names_file = click.option(
        "--from",
        "names_file",
        type=click.Path(path_type=Path, allow_dash=True),
        metavar="FILE",
        help="A file with more topics, one a line, each with a number of partitions after it if it"
        " is to have its own; - is standard input.",
    )
    decorated: Callable[..., Any] = names_file(topics(function))
    return decorated


def read_names(topics: tuple[str, ...], names_file: Path | None) -> list[NamedTopic]:
    """All topics, those of the command line first.

    Raises:
        UsageError: there is none; one comes twice; a line of the file is something else.
    """
    names = [NamedTopic(topic) for topic in topics]
    if names_file is not None:
        names += _lines(names_file)
    if not names:
        raise click.UsageError("name a topic, or a file of them with --from")
    seen: set[str] = set()
    for named in names:
        if named.name in seen:
            raise click.UsageError(f"the topic {named.name} is named twice")
        seen.add(named.name)
    return names


def _lines(names_file: Path) -> Iterator[NamedTopic]:
    try:
        with click.open_file(str(names_file), encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--from {names_file}: {error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) == 1:
            yield NamedTopic(words[0])
        elif len(words) == 2 and words[1].isascii() and words[1].isdigit() and int(words[1]) > 0:
            yield NamedTopic(words[0], int(words[1]))
        else:
            raise click.UsageError(
                f"--from {names_file}: line {number} is not a topic, or a topic and a number of"
                " partitions"
            )
