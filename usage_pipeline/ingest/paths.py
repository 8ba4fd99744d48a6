r"""What a path of the request log means: whose a file is, its time zone, and globs.

A path is a file, a folder (all files below it but hidden ones) or a glob (``*``, ``?``, ``[ab]``,
``**`` for any number of folders), on this machine or in object storage (``s3://bucket/logs``,
``gs://``, ``hdfs://``; a ``?`` there begins options, as in ``s3://bucket/logs?region=eu-west-1``,
which are no part of a file's name); ``stored_logs`` finds them. A file's broker is in its path:
``broker-3``, ``kafka-3``, ``broker=3`` or a folder ``3``, the last one of them; or a pattern of the
caller's, with a group named ``broker``. ``clusters`` finds its cluster.

Example: ``/logs/my-cluster-kafka-3/kafka-request.log.2026-11-20-10.gz`` is broker 3's, packed; with
the zones ``Europe/Berlin`` and ``3=UTC`` its clock is UTC's and all others' Berlin's.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from zoneinfo import ZoneInfo

from sidecar.errors import SidecarError
from usage_pipeline.ingest.file_head import Head
from usage_pipeline.tables.schemas import UNNAMED

NAMED: Final = r"(?:broker|kafka|node|controller)(?:[-_]?|(?:_id)?=)"
"""What is before a broker's id in a name: ``broker-``, ``kafka_``, Hive's ``broker=``."""

DEFAULT_PATTERNS: Final = (
    # Not the version in kafka_2.13-4.3.1 or kafka-3.9.1.
    re.compile(NAMED + r"(?P<broker>\d+)(?!\d|\.\d{1,2}(?!\d))"),
    re.compile(r"(?:^|/)(?P<broker>\d+)/"),
)
WILDCARDS: Final = re.compile(r"[*?\[]")
"""What begins a part of a path that is a glob."""
_LARGEST_ID: Final = (1 << 31) - 1


class RequestLogsError(SidecarError):
    """The request logs can't be read as they were named."""


@dataclass(frozen=True, slots=True)
class Zones:
    """The time zones of the brokers' clocks: ``named`` by broker, ``default`` of all others."""

    default: str = "UTC"
    named: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Zones":
        """From "Europe/Berlin" and "3=UTC", in any order; UTC when there is none.

        Raises:
            RequestLogsError: there is no such zone, or no broker of that name.
        """
        default, named = "UTC", {}
        for one in texts:
            broker, is_named, zone = one.rpartition("=")
            _known_zone(zone)
            if not is_named:
                default = zone
            elif broker.isdecimal():
                named[int(broker)] = zone
            else:
                raise RequestLogsError(f"{one!r}: a broker's zone is written as 3=Europe/Berlin")
        return cls(default, named)

    def name_of(self, broker: int) -> str:
        """The name of a broker's zone."""
        return self.named.get(broker, self.default)

    def __str__(self) -> str:
        """As ``of`` takes it, separated by commas."""
        return ",".join((self.default, *(f"{id_}={zone}" for id_, zone in self.named.items())))


ALL_UTC: Final = Zones()


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of a request log.

    Attributes:
        path: with its scheme, unless it is on this machine; without options.
        broker: whose it is.
        zone: the name of its clock's time zone.
        size: bytes, as it is stored.
        options: of the store that it is in, as in the path.
        changed_at: when it was changed last, seconds since 1970; None: it is not known.
        head: its beginning, which it is known by when it is opened; None in object storage, where
            nothing is appended or renamed.
        cluster: whose broker it is.
    """

    path: str
    broker: int
    zone: str
    size: int
    options: str = ""
    changed_at: float | None = None
    head: Head | None = None
    cluster: str = UNNAMED

    @property
    def packed(self) -> bool:
        """Whether it is gzip, by its name."""
        return self.path.endswith(".gz")


def broker_of(path: str, patterns: Iterable[re.Pattern[str]] = DEFAULT_PATTERNS) -> int:
    """Whose file it is: the last place that a pattern finds; the first pattern that finds one.

    Raises:
        RequestLogsError: none does.
    """
    return broker_and_place(path, patterns)[0]


def broker_and_place(
    path: str, patterns: Iterable[re.Pattern[str]] = DEFAULT_PATTERNS
) -> tuple[int, int]:
    """Whose file it is, and where in the path its id ends; raises as ``broker_of``."""
    for pattern in patterns:
        found = list(pattern.finditer(path))
        if found and int(found[-1]["broker"]) <= _LARGEST_ID:
            return int(found[-1]["broker"]), found[-1].end("broker")
    raise RequestLogsError(
        f"{path}: its path does not name its broker; give a pattern with a group"
        r" named broker: --broker-pattern '/node-(?P<broker>\d+)/'"
    )


def patterns_of(text: str | None) -> tuple[re.Pattern[str], ...]:
    """What finds a file's broker: a pattern of the caller's, or the usual ones.

    Raises:
        RequestLogsError: it is none, or has no group named ``broker``.
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
            f"{zone!r} is no time zone; name one as Europe/Berlin, or UTC"
        ) from error


def glob(path: str) -> re.Pattern[str]:
    """What matches the whole paths that a glob means."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])", path)
    return re.compile(
        "".join(
            parts.get(piece, piece.replace("[!", "[^") if piece[:1] == "[" else re.escape(piece))
            for piece in pieces
        ),
        re.DOTALL,
    )
