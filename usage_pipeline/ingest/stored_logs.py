"""Finds and opens the files of request logs, on this machine or in object storage (with Arrow).

Logs are rotated while they are read. A file on this machine is identified by its beginning
(``file_head.Head``), as it was when the file was listed. It is found again after a rename.

Example: ``s3://logs/*/kafka-request.log*`` lists all files below ``s3://logs`` and selects those
that match the glob. ``paths`` finds the broker of each file.
"""

import errno
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from io import BufferedIOBase
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import fs

from usage_pipeline.ingest.clusters import ClusterError, cluster_of
from usage_pipeline.ingest.file_head import HEAD, Head
from usage_pipeline.ingest.paths import (
    WILDCARDS,
    LogFile,
    RequestLogsError,
    Zones,
    broker_and_place,
    glob,
    patterns_of,
)
from usage_pipeline.runtime.addresses import Address, address_of
from usage_pipeline.runtime.filesystems import located, open_input
from usage_pipeline.runtime.object_storage import storage_failures
from usage_pipeline.tables.schemas import UNNAMED

_SIZE_BYTES: Final = 4
"""The end of a gzip file, which has the uncompressed size (RFC 1952)."""
_CONTROLLER: Final = re.compile(r"controller[^/\d]*\d+$")
_NAMESPACE: Final = re.compile(
    r"/([a-z0-9-]+)_[a-z0-9.-]+_[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/"
    r"|/[a-z0-9.-]+_([a-z0-9-]+)_[a-z0-9-]+-[0-9a-f]{64}\.log"
)
"""Of a pod: pods/NAMESPACE_POD_UID/ and containers/POD_NAMESPACE_CONTAINER-ID.log of /var/log. The
ids are others each time a pod or a container is made."""


def log_files(
    path: str, zones: Zones, broker_pattern: str | None = None, cluster: str | None = None
) -> tuple[LogFile, ...]:
    """Return the files of a path, sorted by path. If a log also exists as gzip, take only the log.

    Args:
        path: a file, a folder or a glob.
        zones: the time zones of the brokers' clocks.
        broker_pattern: a regular expression with a group named ``broker``.
        cluster: the cluster of the files; files whose paths name another cluster are ignored. None
            takes the names from the paths, or UNNAMED.

    Raises:
        RequestLogsError: there are no files, or the broker of a file is unknown.
        ClusterError: the cluster has no files, or two folders have logs of a broker with the same
            id and it is unclear whether they belong to one cluster.
        ObjectStorageError: the store can't be reached or refuses.
        SecretInPathError: the path contains credentials.
    """
    patterns = patterns_of(broker_pattern)
    address = address_of(path)
    infos = sorted(_once(files_of(path)).items())
    if not infos:
        raise RequestLogsError(
            f"{address}: there are no files; name a file, a folder or a glob"
            + (
                " of a bucket that is there, and that these credentials may list"
                * bool(address.store)
            )
        )
    files, below = [], []
    named = set()
    for where, info in infos:
        broker, place = broker_and_place(where, patterns)
        of_path = cluster_of(where, patterns)
        named.add(of_path)
        if cluster is None or of_path in (None, cluster):
            files.append(
                LogFile(
                    where,
                    broker,
                    zones.name_of(broker),
                    info.size,
                    address.options,
                    None if info.mtime_ns is None else info.mtime_ns / 1e9,
                    cluster=of_path or cluster or UNNAMED,
                )
            )
            below.append(where[place:])
    if not files:
        others = ", ".join(sorted(filter(None, named)))
        raise ClusterError(f"{address}: the paths name the clusters {others}, and not {cluster}")
    _refuse_alike(files, below, is_one_cluster=cluster is not None)
    return tuple(files)


def _refuse_alike(files: Iterable[LogFile], below: Iterable[str], *, is_one_cluster: bool) -> None:
    """Refuse paths that may be of two clusters, such as a/broker-3/x.log and b/broker-3/x.log.

    Folders for days look the same; then ``--cluster-id`` says that there is only one cluster. A
    broker and a controller never have the same id, even if kafka-0 and kraftcontroller-0 say so.

    Args:
        files: the files of all brokers.
        below: for each file, the rest of the path after the broker's id.
        is_one_cluster: whether the caller has named the cluster.
    """
    seen: dict[tuple[int, str | None], tuple[str, str]] = {}
    roles: dict[tuple[str, int], tuple[bool, str]] = {}
    for file, rest in zip(files, below, strict=True):
        role = _CONTROLLER.search(file.path.removesuffix(rest)) is not None, file.path
        other = roles.setdefault((file.cluster, file.broker), role)
        if other[0] != role[0]:
            raise ClusterError(
                f"{other[1]} and {file.path} name a broker and a controller with the same id,"
                f" {file.broker}. Name the controllers' folders by their node.id, or read the"
                " brokers' logs alone, --request-logs '/logs/kafka-*'"
            )
        if file.cluster == UNNAMED and not is_one_cluster:
            places: dict[str | None, str] = {rest: file.path}
            if pod := _NAMESPACE.search(file.path):
                places[None] = pod[1] or pod[2]
            for key, place in places.items():
                before = seen.setdefault((file.broker, key), (place, file.path))
                if before[0] != place:
                    raise ClusterError(
                        f"{before[1]} and {file.path} are both logs of a broker {file.broker}. If"
                        " there is one cluster, name it with --cluster-id. If there are two, name"
                        " them in the paths, cluster_id=eu/broker-3, or by a group in"
                        r" --broker-pattern, '/(?P<cluster>\w+)/broker-(?P<broker>\d+)/'"
                    )


def files_of(path: str) -> dict[str, fs.FileInfo]:
    """Return the files of a path, without names that begin with a dot or an underscore.

    Args:
        path: a file, a folder or a glob.

    Raises:
        RequestLogsError: the files can't be listed.
        SidecarError: the store can't be reached, or the path contains credentials.
    """
    address = address_of(path)
    if address.store:
        address = replace(address, path=address.path.rstrip("/"))
    else:
        address = Address("", str(Path(address.path).absolute()))
    base = address.path
    if wildcard := WILDCARDS.search(base):
        base = base[: base.rindex("/", 0, wildcard.start())] or ("" if address.store else "/")
    try:
        with storage_failures(str(address)):
            system, inner = located(replace(address, path=base))
            infos = _infos(system, inner)
    except (OSError, pa.ArrowException) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise RequestLogsError(f"{address}: {first_line}") from error
    root = f"{address.store}{base}"
    files = {root + info.path[len(inner) :]: info for info in infos}
    if wildcard is None:
        return files
    matching = glob(str(address))
    return {whole: info for whole, info in files.items() if matching.fullmatch(whole)}


def identified(file: LogFile) -> LogFile:
    """Identify a log by its beginning, to read it later.

    Raises:
        RequestLogsError: since the listing, its name has been given to another file, or it may not
            be read.
    """
    if "://" in file.path:
        return file
    if Path(file.path).exists() and not os.access(file.path, os.R_OK):
        raise RequestLogsError(f"{file.path}: this user may not read it; change its permissions")
    beginning = _beginning(Path(file.path))
    if beginning is not None and beginning[0] < file.size:
        raise RequestLogsError(f"{file.path} was rotated while files were listed: run it again")
    return file if beginning is None else replace(file, size=beginning[0], head=beginning[1])


def open_log(file: LogFile) -> BufferedIOBase:
    """Open an identified log under its current name. The caller closes it.

    Raises:
        OSError: it can't be opened, or no longer exists.
    """
    if file.head is None:
        opened = open_input(file.path, file.options)
        if opened.seek(0, os.SEEK_END) == file.size:
            opened.seek(0)
            return opened
        opened.close()
        raise OSError(errno.ESTALE, "it was rewritten while it was read: run again", file.path)
    path = Path(file.path)
    for candidate in _where(path):
        beginning = _beginning(candidate, file.head.length)
        if beginning is not None and beginning[1] == file.head and beginning[0] >= file.size:
            return open_input(str(candidate))
    raise OSError(
        errno.ESTALE, "it was compressed or removed while it was read: run again", file.path
    )


def text_of(file: LogFile) -> tuple[Head, int] | None:
    """Return the beginning and the length of a log's text, compressed or not, or None.

    The length is modulo 2**32, as in gzip. If data was appended to a gzip file, it is the length of
    the appended data.

    Raises:
        OSError: the file can't be opened.
    """
    with open_log(file) as opened:
        size = file.size
        if file.packed:
            opened.seek(max(0, size - _SIZE_BYTES))
            size = int.from_bytes(opened.read(_SIZE_BYTES), "little")
            opened.seek(0)
        try:
            first = (gzip.GzipFile(fileobj=opened) if file.packed else opened).read(HEAD)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return None
    return (Head.cut(first), size % (1 << 8 * _SIZE_BYTES)) if first else None


def _where(path: Path) -> Iterator[Path]:
    """Yield where a log may be: under its old name, then in the same folder.

    A folder may have tens of thousands of logs, and hardly any is renamed in the meantime. Listing
    the folder for each log would take hours.
    """
    yield path
    yield from sorted(path.parent.iterdir())


def _beginning(path: Path, length: int = HEAD) -> tuple[int, Head] | None:
    """Return a file's size and its first bytes, compressed or not, or None."""
    try:
        with path.open("rb") as file:
            first = file.read(length)
            return os.fstat(file.fileno()).st_size, Head.cut(first)
    except OSError:
        return None


def _once(infos: Mapping[str, fs.FileInfo]) -> dict[str, fs.FileInfo]:
    """Leave out gzip files that are being written: if the log still exists, it is complete."""
    return {
        path: info
        for path, info in infos.items()
        if not (path.endswith(".gz") and path.removesuffix(".gz") in infos)
    }


def _infos(system: fs.FileSystem, inner: str) -> list[fs.FileInfo]:
    info = system.get_file_info(inner)
    if info.type == fs.FileType.Directory:
        infos = system.get_file_info(fs.FileSelector(inner, recursive=True))
    else:
        infos = [info]
    return [
        info
        for info in infos
        if info.type == fs.FileType.File
        and not any(
            name.startswith((".", "_")) for name in info.path[len(inner) :].split("/") if name
        )
    ]
