"""The request log's files, found and opened: on this machine, or in object storage, by Arrow.

Logs are rotated while they are read. A file of this machine is known by its beginning, as it was
when it was ``identified`` (``file_head.Head``); one that has another name by then is read there.

Example: ``s3://logs/*/kafka-request.log*`` lists what is below ``s3://logs`` and takes those files
that the glob means; ``paths`` finds the broker of each.
"""

import errno
import gzip
import os
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
"""At the end of a gzip file: how much is packed in it (RFC 1952)."""


def log_files(
    path: str, zones: Zones, broker_pattern: str | None = None, cluster: str | None = None
) -> tuple[LogFile, ...]:
    """The files of a path, by path; of a log beside its own gzip the log alone.

    Args:
        path: of a file, a folder or a glob.
        zones: of the brokers' clocks.
        broker_pattern: a regular expression with a group named ``broker``, to find in the path.
        cluster: whose files they are; those whose paths name another are left out; None: as the
            paths say, else UNNAMED.

    Raises:
        RequestLogsError: there are none, or the broker of one is unknown.
        ClusterError: there are none of the cluster, or nothing says whether the logs of two
            brokers with one id are of one cluster.
        ObjectStorageError: the store can't be reached, or refuses.
        SecretInPathError: the path holds credentials.
    """
    patterns = patterns_of(broker_pattern)
    address = address_of(path)
    found = sorted(_once(files_of(path)).items())
    if not found:
        raise RequestLogsError(
            f"{address}: there are no files; name a file, a folder or a glob"
            + (
                " of a bucket that is there, and that these credentials may list"
                * bool(address.store)
            )
        )
    files, below = [], []
    named = set()
    for where, info in found:
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
                    _changed_at(info),
                    cluster=of_path or cluster or UNNAMED,
                )
            )
            below.append(where[place:])
    if not files:
        others = ", ".join(sorted(filter(None, named)))
        raise ClusterError(f"{address}: the paths name the clusters {others}, and not {cluster}")
    if cluster is None:
        _refuse_alike(files, below)
    return tuple(files)


def _refuse_alike(files: Iterable[LogFile], below: Iterable[str]) -> None:
    """Refuses what may well be two brokers of two clusters: a/broker-3/x.log and b/broker-3/x.log.

    Folders of days look like it too; there ``--cluster-id`` says that it is one cluster.

    Args:
        files: of all brokers.
        below: what follows the broker's id in the path of each.
    """
    seen: dict[tuple[int, str], str] = {}
    for file, rest in zip(files, below, strict=True):
        if file.cluster == UNNAMED:
            before = seen.setdefault((file.broker, rest), file.path)
            if before != file.path:
                raise ClusterError(
                    f"{before} and {file.path} are both of a broker {file.broker}: of one cluster,"
                    " then name it with --cluster-id; or of two, then name them in the paths,"
                    " cluster_id=eu/broker-3, or by a group in --broker-pattern,"
                    r" '/(?P<cluster>\w+)/broker-(?P<broker>\d+)/'"
                )


def files_of(path: str) -> dict[str, fs.FileInfo]:
    """The files of a path, by their paths, but those whose names begin with a dot or a line.

    Args:
        path: of a file, a folder or a glob.

    Raises:
        RequestLogsError: they can't be listed.
        SidecarError: the store can't be reached, or the path holds credentials.
    """
    return dict(_found(address_of(path)))


def identified(file: LogFile) -> LogFile:
    """A log that is to be read later, known from here on by how it begins.

    Raises:
        RequestLogsError: since it was listed, its name has become another's.
    """
    if "://" in file.path:
        return file
    beginning = _beginning(Path(file.path))
    if beginning is not None and beginning[0] < file.size:
        raise RequestLogsError(f"{file.path} was rotated while files were listed: run it again")
    return file if beginning is None else replace(file, size=beginning[0], head=beginning[1])


def open_log(file: LogFile) -> BufferedIOBase:
    """Opens a log that was identified, whatever its name is now; to be closed by the caller.

    Raises:
        OSError: it can't be opened, or is not there any more.
    """
    if file.head is None:
        opened = open_input(file.path, file.options)
        if opened.seek(0, os.SEEK_END) == file.size:
            opened.seek(0)
            return opened
        opened.close()
        raise OSError(errno.ESTALE, "it was written anew while it was read: run again", file.path)
    path = Path(file.path)
    for one in _where(path):
        beginning = _beginning(one, file.head.length)
        if beginning is not None and beginning[1] == file.head and beginning[0] >= file.size:
            return open_input(str(one))
    raise OSError(errno.ESTALE, "it was packed or removed while it was read: run again", file.path)


def text_of(file: LogFile) -> tuple[Head, int] | None:
    """How a log's text begins and how long it is, packed or not; None where it can't be read.

    The length is modulo 2**32, as gzip has it; of a gzip file that was appended to, it is that of
    what was appended.

    Raises:
        OSError: it can't be opened.
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
    return (Head.cut(first, len(first)), size % (1 << 8 * _SIZE_BYTES)) if first else None


def _where(path: Path) -> Iterator[Path]:
    """Where a log may be: where it was, then beside it.

    A folder may have tens of thousands of logs, and hardly any is renamed meanwhile: to list it for
    each of them would take hours.
    """
    yield path
    yield from sorted(path.parent.iterdir())


def _beginning(path: Path, length: int = HEAD) -> tuple[int, Head] | None:
    """A file's size and its first bytes, packed or not; None where it can't be read."""
    try:
        with path.open("rb") as file:
            first = file.read(length)
            return os.fstat(file.fileno()).st_size, Head.cut(first, len(first))
    except OSError:
        return None


def _found(path: Address) -> Iterable[tuple[str, fs.FileInfo]]:
    """Files by their paths."""
    if path.store:
        path = replace(path, path=path.path.rstrip("/"))
    else:
        path = Address("", str(Path(path.path).absolute()))
    base = path.path
    if wildcard := WILDCARDS.search(base):
        base = base[: base.rindex("/", 0, wildcard.start())] or ("" if path.store else "/")
    try:
        with storage_failures(str(path)):
            system, inner = located(replace(path, path=base))
            infos = _infos(system, inner)
    except (OSError, pa.ArrowException) as error:
        raise RequestLogsError(f"{path}: {_first_line(error)}") from error
    root = f"{path.store}{base}"
    matching = glob(str(path)) if wildcard else None
    for info in infos:
        whole = root + info.path[len(inner) :]
        if matching is None or matching.fullmatch(whole):
            yield whole, info


def _once(found: Mapping[str, fs.FileInfo]) -> dict[str, fs.FileInfo]:
    """Without those that are being packed: of a log beside its own gzip the former is whole."""
    return {
        path: info
        for path, info in found.items()
        if not (path.endswith(".gz") and path.removesuffix(".gz") in found)
    }


def _changed_at(info: fs.FileInfo) -> float | None:
    return None if info.mtime_ns is None else info.mtime_ns / 1e9


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _infos(system: fs.FileSystem, inner: str) -> list[fs.FileInfo]:
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
