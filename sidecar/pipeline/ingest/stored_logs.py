"""The request log's files, found and opened: on this machine, or in object storage, by Arrow.

Logs are rotated while they are read. A file of this machine is known by its beginning, as it was
when it was ``identified`` (``file_head.Head``); one that has another name by then is read there.

Example: ``s3://logs/*/kafka-request.log*`` lists what is below ``s3://logs`` and takes those files
that the glob means; ``paths`` finds the broker of each.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from io import BufferedIOBase
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from sidecar.pipeline.ingest.file_head import HEAD, Head
from sidecar.pipeline.ingest.paths import (
    WILDCARDS,
    LogFile,
    RequestLogsError,
    Zones,
    broker_of,
    glob,
    patterns_of,
)
from sidecar.pipeline.runtime.addresses import Address, address_of
from sidecar.pipeline.runtime.filesystems import located, open_input
from sidecar.pipeline.runtime.object_storage import storage_failures


def log_files(path: str, zones: Zones, broker_pattern: str | None = None) -> tuple[LogFile, ...]:
    """The files of a path, by path; of a log beside its own gzip the log alone.

    Args:
        path: of a file, a folder or a glob.
        zones: of the brokers' clocks.
        broker_pattern: a regular expression with a group named ``broker``, to find in the path.

    Raises:
        RequestLogsError: there are none, or the broker of one is unknown.
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
    return tuple(
        LogFile(where, broker, zones.name_of(broker), info.size, address.options, _changed_at(info))
        for where, info in found
        for broker in (broker_of(where, patterns),)
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
    """A log that is to be read later, known from here on by how it begins."""
    if "://" in file.path:
        return file
    beginning = _beginning(Path(file.path))
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
    wanted = glob(str(path)) if wildcard else None
    for info in infos:
        whole = root + info.path[len(inner) :]
        if wanted is None or wanted.fullmatch(whole):
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
