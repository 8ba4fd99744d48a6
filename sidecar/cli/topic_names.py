"""The topics of a command: arguments of the command line, or lines of a file.

Example: a file with the lines ``orders`` and ``bills 12`` names two topics, the second one with 12
partitions. Blank lines and lines that begin with # are ignored.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import click

MOST_PARTITIONS: Final = 2**31 - 1
"""The largest number in Kafka's protocol."""

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class NamedTopic:
    """A topic with its name on the command line or in the file.

    Attributes:
        name: never empty.
        partitions: the number in the file, or None.
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
    return names_file(topics(function))


def read_names(topics: tuple[str, ...], names_file: Path | None) -> list[NamedTopic]:
    """Return all topics; those of the command line come first.

    Raises:
        UsageError: there is no topic, a topic is named twice, or a line of the file is invalid.
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
        # Editors of Windows begin a file with a byte order mark.
        with click.open_file(str(names_file), encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--from {names_file}: {error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) == 1:
            yield NamedTopic(words[0])
        elif len(words) == 2 and (partitions := _partitions(words[1])):
            yield NamedTopic(words[0], partitions)
        else:
            raise click.UsageError(
                f"--from {names_file}: line {number} is not a topic, or a topic and a number of"
                " partitions"
            )


def _partitions(word: str) -> int | None:
    """The number of partitions; None if it is none."""
    if not re.fullmatch("[0-9]{1,10}", word) or not 0 < int(word) <= MOST_PARTITIONS:
        return None
    return int(word)
