r"""The request log's files of a path: where they are, whose they are, and of which time zone.

A path is a file, a folder (all files below it but hidden ones) or a glob (``*``, ``?``, ``[ab]``,
``**`` for any number of folders), on this machine or in object storage (``s3://bucket/logs``,
``gs://``, ``hdfs://``; a ``?`` there begins options, as in ``s3://bucket/logs?region=eu-west-1``,
which are no part of a file's name). A store that doesn't answer is given up after half a minute.
Whose a file is, its path tells: ``broker-3``, ``kafka-3`` or a folder ``3``, the last one of them;
or a pattern of the caller's, with a group named ``broker``.

Example: ``/logs/my-cluster-kafka-3/kafka-request.log.2026-11-20-10.gz`` is broker 3's, packed; with
the zones ``Europe/Berlin`` and ``3=UTC`` its clock is UTC's and all others' Berlin's.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs
from zoneinfo import ZoneInfo

from sidecar.errors import SidecarError
from sidecar.pipeline.addresses import Address, address_of
from sidecar.pipeline.object_storage import told_in_a_line

if TYPE_CHECKING:
    # Not at run time: of the extra, and the commands tell their options without it.
    from pyarrow import fs

_DEFAULT_PATTERNS: Final = (
    # Not the version in kafka_2.13-4.3.1 or kafka-3.9.1.
    re.compile(r"(?:broker|kafka|node|controller)[-_]?(?P<broker>\d+)(?!\d|\.\d{1,2}(?!\d))"),
    re.compile(r"(?:^|/)(?P<broker>\d+)/"),
)
_WILDCARDS: Final = re.compile(r"[*?\[]")
_LARGEST_ID: Final = (1 << 31) - 1
_CONNECT_S: Final = 5.0
_ANSWER_S: Final = 10.0
_ATTEMPTS: Final = 3
_FLAGS: Final = {
    "allow_bucket_creation",
    "allow_bucket_deletion",
    "check_directory_existence_before_creation",
    "force_virtual_addressing",
}
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


class RequestLogsError(SidecarError):
    """The request logs can't be read as they were told."""


@dataclass(frozen=True, slots=True)
class Zones:
    """Of which time zone the brokers' clocks are.

    Attributes:
        default: of those that are not named.
        named: by broker.
    """

    default: str = "UTC"
    named: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, told: Iterable[str]) -> "Zones":
        """From "Europe/Berlin" and "3=UTC", in any order; UTC when nothing is told.

        Raises:
            RequestLogsError: there is no such zone, or no broker of that name.
        """
        default, named = "UTC", {}
        for one in told:
            broker, is_named, zone = one.rpartition("=")
            _known_zone(zone)
            if not is_named:
                default = zone
            elif broker.isdecimal():
                named[int(broker)] = zone
            else:
                raise RequestLogsError(f"{one!r}: a broker's zone is told as 3=Europe/Berlin")
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
        options: of the store that it is in, as they were given.
    """

    path: str
    broker: int
    zone: str
    size: int
    options: str = ""

    @property
    def packed(self) -> bool:
        """Whether it is gzip, by its name."""
        return self.path.endswith(".gz")


def log_files(path: str, zones: Zones, broker_pattern: str | None = None) -> tuple[LogFile, ...]:
    """The files of a path, by path.

    Args:
        path: of a file, a folder or a glob.
        zones: of the brokers' clocks.
        broker_pattern: a regular expression with a group named ``broker``, to find in the path.

    Raises:
        RequestLogsError: there are none, or it can't be told whose one is.
        ObjectStorageError: the store can't be reached, or refuses.
        SecretInPathError: the path holds credentials.
    """
    patterns = _DEFAULT_PATTERNS if broker_pattern is None else (_pattern(broker_pattern),)
    address = address_of(path)
    found = sorted(_found(address))
    if not found:
        raise RequestLogsError(
            f"{address}: there are no files; name a file, a folder or a glob"
            + (
                " of a bucket that is there, and that these credentials may list"
                * bool(address.store)
            )
        )
    return tuple(
        LogFile(where, broker, zones.name_of(broker), size, address.options)
        for where, size in found
        for broker in (broker_of(where, patterns),)
    )


def broker_of(path: str, patterns: Iterable[re.Pattern[str]] = _DEFAULT_PATTERNS) -> int:
    """Whose file it is: the last place that a pattern finds; the first pattern that finds one.

    Raises:
        RequestLogsError: none does.
    """
    for pattern in patterns:
        found = [match["broker"] for match in pattern.finditer(path)]
        if found and int(found[-1]) <= _LARGEST_ID:
            return int(found[-1])
    raise RequestLogsError(
        f"{path}: which broker's it is can't be told from its path; give a pattern with a group"
        r" named broker: --broker-pattern '/node-(?P<broker>\d+)/'"
    )


def open_input(path: str, options: str = "") -> BufferedIOBase:
    """Opens a file to read from any place of it; to be closed by the caller.

    Args:
        path: of a ``LogFile``.
        options: of the same.

    Raises:
        OSError: it can't be opened.
    """
    # Not of the whole: a file's name may have a "?" in it, and an "@".
    store, separator, name = path.partition("://")
    host, slash, name = name.partition("/")
    at = (
        Address(store + separator + host, slash + name, options) if separator else Address("", path)
    )
    system, inner = _located(at)
    opened: BufferedIOBase = system.open_input_file(inner)
    return opened


def _pattern(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise RequestLogsError(f"the broker pattern {text!r}: {error}") from error
    if "broker" not in pattern.groupindex:
        raise RequestLogsError(f"the broker pattern {text!r} has no group (?P<broker>...)")
    return pattern


def _known_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise RequestLogsError(
            f"{zone!r} is no time zone; name one as Europe/Berlin, or UTC"
        ) from error


def _located(at: Address) -> "tuple[fs.FileSystem, str]":
    from pyarrow import fs  # noqa: PLC0415 - see above

    if not at.store:
        return fs.LocalFileSystem(), at.path
    system, inner = fs.FileSystem.from_uri(at.uri)
    if isinstance(system, fs.S3FileSystem):
        return _impatient(system.region, at.options), inner
    return system, inner


def _impatient(region: str, options: str) -> "fs.S3FileSystem":
    """The same store with shorter waits than a URI can ask for: its own add up to 99 s."""
    from pyarrow import fs  # noqa: PLC0415 - see above

    given: dict[str, Any] = {name: values[-1] for name, values in parse_qs(options[1:]).items()}
    given.pop("region", None)
    for name in _FLAGS & given.keys():
        given[name] = given[name].lower() in {"1", "true"}
    # Arrow looks for it in the environment only when it is given a URI.
    endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
    return fs.S3FileSystem(
        region=region,
        connect_timeout=_CONNECT_S,
        request_timeout=_ANSWER_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        **{"endpoint_override": endpoint, **given},
    )


def _found(path: Address) -> Iterable[tuple[str, int]]:
    """Paths and sizes."""
    import pyarrow as pa  # noqa: PLC0415 - see above

    if path.store:
        path = replace(path, path=path.path.rstrip("/"))
    else:
        path = Address("", str(Path(path.path).absolute()))
    base = path.path
    if wildcard := _WILDCARDS.search(base):
        base = base[: base.rindex("/", 0, wildcard.start())] or ("" if path.store else "/")
    try:
        with told_in_a_line(str(path)):
            system, inner = _located(replace(path, path=base))
            infos = _infos(system, inner)
    except (OSError, pa.ArrowException) as error:
        raise RequestLogsError(f"{path}: {_first_line(error)}") from error
    root = f"{path.store}{base}"
    wanted = _glob(str(path)) if wildcard else None
    for info in infos:
        whole = root + info.path[len(inner) :]
        if wanted is None or wanted.fullmatch(whole):
            yield whole, info.size


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _infos(system: "fs.FileSystem", inner: str) -> "list[fs.FileInfo]":
    from pyarrow import fs  # noqa: PLC0415 - see above

    info = system.get_file_info(inner)
    if info.type == fs.FileType.Directory:
        infos = system.get_file_info(fs.FileSelector(inner, recursive=True))
    else:
        infos = [info]
    return [
        one
        for one in infos
        if one.type == fs.FileType.File
        and not any(
            name.startswith((".", "_")) for name in one.path[len(inner) :].split("/") if name
        )
    ]


def _glob(path: str) -> re.Pattern[str]:
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])", path)
    return re.compile(
        "".join(
            parts.get(piece, piece.replace("[!", "[^") if piece[:1] == "[" else re.escape(piece))
            for piece in pieces
        ),
        re.DOTALL,
    )
