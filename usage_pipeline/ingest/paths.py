r"""Interprets the paths of request logs: broker, time zone, and globs.

A path is a file, a folder (all files below it that are not hidden) or a glob (``*``, ``?``,
``[ab]``, ``**`` for any number of folders), on this machine or in object storage
(``s3://bucket/logs``, ``gs://``, ``hdfs://``). In object storage, ``?`` begins options, as in
``s3://bucket/logs?region=eu-west-1``; they are not part of a file's name. ``stored_logs`` finds the
files. The path names the file's broker: the last ``broker-3``, ``kafka-3``, ``broker=3`` or folder
``3``, or the group ``broker`` of the caller's pattern. ``clusters`` finds the cluster.

Example: ``/logs/my-cluster-kafka-3/kafka-request.log.2026-11-20-10.gz`` is a compressed log of
broker 3. With the zones ``Europe/Berlin`` and ``3=UTC``, this broker's clock shows UTC, and the
clocks of all other brokers show Berlin's time.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from sidecar.errors import SidecarError
from usage_pipeline.ingest.file_head import Head
from usage_pipeline.tables.schemas import UNNAMED

NAMED: Final = r"(?:broker|kafka|node|controller)(?:[-_]?|(?:_id)?=)"
"""The prefixes of a broker's id in a name: ``broker-``, ``kafka_``, Hive's ``broker=``."""

DEFAULT_PATTERNS: Final = (
    # This does not match the version in kafka_2.13-4.3.1 or kafka-3.9.1, nor the container in
    # broker-3_kafka_kafka-9f8e0a.log, nor the date in kafka-2026-11-20.log or
    # kafka-2026112010.log, nor the node pool in my-cluster-kafka-1-7/ or
    # the address in kafka-10-0-1-7/.
    re.compile(
        NAMED
        + r"(?!(?:19|20)\d\d([-_.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?:\d\d)*(?!\d))"
        r"(?P<broker>\d+)(?![0-9A-Za-z]|\.\d{1,2}(?!\d)|(?:-(?!(?:19|20)\d\d)\d{1,5})+[/_])"
    ),
    # A folder of digits, but no year or date, nor one of several such folders, as in 2026/03/04.
    re.compile(r"(?:^/?|(?:^|/)[^/]*[^\d/][^/]*/)(?!(?:19|20)\d\d/)(?P<broker>\d{1,6})/(?!\d+/)"),
)
WILDCARDS: Final = re.compile(r"[*?\[]")
"""The characters that make a part of a path a glob."""
_LARGEST_ID: Final = (1 << 31) - 1


class RequestLogsError(SidecarError):
    """The request logs can't be found or read by the given path."""


@dataclass(frozen=True, slots=True)
class Zones:
    """The time zones of the brokers' clocks: ``named`` by broker, ``default`` for all others."""

    default: str = "UTC"
    named: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Zones":
        """Parse "Europe/Berlin" and "3=UTC", in any order; the default is UTC.

        Raises:
            RequestLogsError: a zone does not exist, or a broker's id is not a number.
        """
        default, named = "UTC", {}
        for text in texts:
            broker, is_named, zone = text.rpartition("=")
            _known_zone(zone)
            if not is_named:
                default = zone
            elif broker.isdecimal():
                named[int(broker)] = zone
            else:
                raise RequestLogsError(f"{text!r}: a broker's zone is written as 3=Europe/Berlin")
        return cls(default, named)

    def name_of(self, broker: int) -> str:
        """Return the name of a broker's zone."""
        return self.named.get(broker, self.default)


ALL_UTC: Final = Zones()


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of a request log.

    Attributes:
        path: the path without options; in object storage it has its scheme.
        broker: the id of its broker.
        zone: the name of the broker's time zone.
        size: the stored size in bytes.
        options: the options of the store, as in the path.
        changed_at: the time of the last change, in seconds since 1970; None if unknown.
        head: the file's beginning, which identifies it when it is opened; None in object storage,
            where files are not appended to or renamed.
        cluster: the broker's cluster.
        layout: the pattern of its layout in log4j; None if it is not known.
    """

    path: str
    broker: int
    zone: str
    size: int
    options: str = ""
    changed_at: float | None = None
    head: Head | None = None
    cluster: str = UNNAMED
    layout: str | None = None

    @property
    def packed(self) -> bool:
        """Whether its name is that of a gzip file."""
        return self.path.endswith(".gz")


class BrokerName(NamedTuple):
    """A broker of some files, with its cluster and what names it in their paths."""

    cluster: str
    broker: int
    named_by: str


def broker_and_place(path: str, patterns: Iterable[re.Pattern[str]]) -> tuple[int, int]:
    """Return the broker of a file, and where in the path its id ends.

    The last match of the first pattern that matches decides.

    Raises:
        RequestLogsError: no pattern matches.
    """
    match = _match_of(path, patterns)
    return int(match["broker"]), match.end("broker")


def named_by(path: str, patterns: Iterable[re.Pattern[str]]) -> str:
    """Return what names the broker of a file, for a person; raises as ``broker_and_place`` does."""
    match = _match_of(path, patterns)
    if match.re not in DEFAULT_PATTERNS:
        return f"--broker-pattern ({match[0]})"
    begin = path.rfind("/", 0, match.start("broker")) + 1
    name, is_folder, _ = path[begin:].partition("/")
    return f"the folder {name}" if is_folder else f"{match[0]} in the file name"


def _match_of(path: str, patterns: Iterable[re.Pattern[str]]) -> re.Match[str]:
    for pattern in patterns:
        matches = list(pattern.finditer(path))
        id_ = matches[-1]["broker"] if matches else None
        # A caller's group may match no digits, or nothing.
        if id_ is not None and id_.isdecimal() and int(id_) <= _LARGEST_ID:
            return matches[-1]
    raise RequestLogsError(
        f"{path}: the path does not name the broker; give a pattern with a group"
        r" named broker: --broker-pattern '/node-(?P<broker>\d+)/'"
    )


def patterns_of(text: str | None) -> tuple[re.Pattern[str], ...]:
    """Return the patterns that find a file's broker: the caller's, or the usual ones.

    Raises:
        RequestLogsError: the pattern is not valid, or has no group named ``broker``.
    """
    if text is None:
        return DEFAULT_PATTERNS
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise RequestLogsError(f"the broker pattern {text!r}: {error}") from error
    if "broker" not in pattern.groupindex:
        raise RequestLogsError(f"the broker pattern {text!r} has no group (?P<broker>...)")
    return (pattern,)


def _known_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise RequestLogsError(
            f"{zone!r} is not a time zone; write one such as Europe/Berlin or UTC"
        ) from error


def glob(path: str) -> re.Pattern[str]:
    """Return the pattern that matches the complete paths of a glob."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])", path)
    return re.compile(
        "".join(
            parts.get(piece, piece.replace("[!", "[^") if piece[:1] == "[" else re.escape(piece))
            for piece in pieces
        ),
        re.DOTALL,
    )
