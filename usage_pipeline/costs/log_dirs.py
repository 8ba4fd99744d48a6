"""Reads outputs of Kafka's ``kafka-log-dirs.sh --describe``: the stored bytes of each topic.

A file stands for the day in its name. Its bytes are those of all replicas, on all log dirs. If a
log dir had an error, the bytes are a lower bound.

Example: ``log-dirs-2026-11-20.json`` with 3 replicas of orders-0, 1 GB each, has 3 GB and one
partition of orders on 20 November.

Source: ``LogDirsCommand.java`` of Kafka 4.3.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Final

import msgspec

from usage_pipeline.costs.inputs import CostsError

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Topic:
    """The bytes of a topic's replicas, and the number of its partitions."""

    bytes: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The topics at a time, and whether all log dirs could be read."""

    topics: Mapping[str, Topic]
    is_whole: bool


class _Partition(msgspec.Struct):
    partition: Annotated[str, msgspec.Meta(pattern=r"^.+-\d+$")]
    size: Annotated[int, msgspec.Meta(ge=0)]


class _LogDir(msgspec.Struct, rename="camel"):
    partitions: list[_Partition]
    error: str | None = None


class _Broker(msgspec.Struct, rename="camel"):
    log_dirs: list[_LogDir]


class _Document(msgspec.Struct):
    brokers: Annotated[list[_Broker], msgspec.Meta(min_length=1)]


def read_log_dirs(path: Path) -> dict[date, Snapshot]:
    """Read a file, or the JSON files of a folder.

    Raises:
        CostsError: a file can't be used, or two files have the same day.
    """
    files: dict[date, Path] = {}
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        day = _day_of(file)
        if (other := files.setdefault(day, file)) != file:
            raise CostsError(f"{other} and {file} are of the same day; remove one")
    if not files:
        raise CostsError(f"{path} has no files such as log-dirs-2026-11-20.json")
    return {day: _snapshot(file) for day, file in files.items()}


def _day_of(file: Path) -> date:
    days = _DAY.findall(file.name)
    try:
        (day,) = map(date.fromisoformat, days)
    except ValueError as error:
        raise CostsError(
            f"{file}: the name must contain its day, as log-dirs-2026-11-20.json; rename it"
        ) from error
    return day


def _snapshot(file: Path) -> Snapshot:
    try:
        lines = file.read_bytes().splitlines()
        # The tool prints two lines of text before the JSON.
        text = next((line for line in lines if line.startswith(b"{")), b"")
        document = msgspec.json.decode(text, type=_Document)
    except OSError as error:
        raise CostsError(f"{file} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise CostsError(
            f'{file} is not an output of "kafka-log-dirs.sh --describe": {error}'
        ) from error
    dirs = [each for broker in document.brokers for each in broker.log_dirs]
    sizes: dict[str, int] = defaultdict(int)
    for each in dirs:
        for replica in each.partitions:
            sizes[replica.partition] += replica.size
    topics: dict[str, Topic] = {}
    for partition, size in sizes.items():
        name = partition.rpartition("-")[0]
        topic = topics.get(name, Topic(0, 0))
        topics[name] = Topic(topic.bytes + size, topic.partitions + 1)
    return Snapshot(topics, all(each.error is None for each in dirs))
