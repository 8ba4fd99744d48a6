"""Commits all tables of a run atomically.

Each table is a Delta table with its own commits. A run first creates its record,
``_commits/00000000000000000007.json``, which lists all commits. Only one run can create this file.
Of two runs that start from the same tables, one creates the record and the other changes nothing.
After the record, the run commits each table, with the record's number as the transaction, and skips
completed commits. Last, it writes ``_manifest.json`` with the versions of the tables. If a run is
killed after its record, the next run completes the commits before it reads tables.

Record 0 marks a new folder before a run writes other files to it (``begin``).

Readers use the versions of the manifest (``pinned``). Upkeep removes files that belong to no recent
version, but never files of the manifest's versions.

Example: a run of 20 and 21 November with two tables creates record 7, replaces both days in each
table, and writes the versions silver_request 12 and gold_usage_1s 9 to the manifest. If it is
killed after the first table, readers use 11 and 8 until the next run has committed the second.

Delta-rs does not prevent duplicate rows in these cases: two writers add the same day, an overwrite
coincides with an append, a transaction is repeated, or a file is missing. The atomic record,
commits to the version that was read (``delta``), the transaction number, and a check of each file
do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from sidecar.errors import SidecarError
from usage_pipeline.runtime.object_storage import storage_failures
from usage_pipeline.tables import delta
from usage_pipeline.tables.delta import OtherFormatError
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.parquet_files import NotWrittenError
from usage_pipeline.tables.schemas import EARLIER, FORMAT, TABLES, UNNAMED, Table, tables_of
from usage_pipeline.tables.table_files import Written

if TYPE_CHECKING:
    from deltalake import DeltaTable

MANIFEST: Final = "_manifest.json"
RECORDS: Final = "_commits"
"""The folder of the records of batch runs."""
STREAMS: Final = "_streams"
"""The folder in which streams register their tables."""
_APP: Final = "throttle-sidecar/"
"""The prefix of a transaction's id; each cluster of a table has its own transactions."""
_T = TypeVar("_T")


class OutdatedError(SidecarError):
    """Another run has committed since this run began."""


class Change(msgspec.Struct, frozen=True):
    """The new rows of a cluster in a table.

    Attributes:
        table: the name of the table.
        files: the new files.
        days: the days that they replace, such as 2026-11-21; None for all of the cluster's days.
        cluster: the cluster of the rows.
    """

    table: str
    files: list[Written]
    days: list[str] | None = None
    cluster: str = UNNAMED


class _Record(msgspec.Struct, frozen=True):
    format: int
    number: int
    by: str
    at: datetime
    changes: list[Change]


class _Manifest(msgspec.Struct, frozen=True):
    format: int
    number: int
    by: str
    at: datetime
    tables: dict[str, int]


@dataclass(frozen=True, slots=True)
class Pinned:
    """The tables of one run. Each is opened at its first use.

    Attributes:
        folder: the folder of the tables.
        number: the number of the last run; 0 if there are no tables.
        versions: the version of each existing table, by name.
        format: the format of the tables.
        streamed: the names of the tables that a stream writes.
    """

    folder: Folder
    number: int
    versions: Mapping[str, int]
    format: int = FORMAT
    streamed: frozenset[str] = frozenset()
    _there: dict[str, "tuple[DeltaTable | None, Sequence[Written]]"] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def files(self, table: Table) -> Sequence[Written]:
        """Return the files of a table, of all clusters; none if it does not exist."""
        return self._looked_at(table)[1]

    def clusters(self) -> list[str]:
        """The clusters with rows in any table."""
        return sorted({file.cluster for table in TABLES for file in self.files(table)})

    def has_written(self, table: Table, cluster: str) -> bool:
        """Whether a run has ever written a cluster to a table, even without rows."""
        opened, _ = self._looked_at(table)
        return opened is not None and opened.transaction_version(_APP + cluster) is not None

    def _looked_at(self, table: Table) -> "tuple[DeltaTable | None, Sequence[Written]]":
        if table.name not in self._there:
            version = self.versions.get(table.name)
            opened = None if version is None else delta.opened_table(self.folder, table, version)
            self._there[table.name] = opened, delta.files_in(opened)
        return self._there[table.name]


def pinned(folder: Folder) -> Pinned:
    """Return the tables as readers see them.

    The last run's manifest has the version of each table, and a stream's tables have their newest.

    Raises:
        OtherFormatError: another version of this program wrote them.
    """
    text = folder.read(MANIFEST)
    if text is None:
        _refuse_unmarked(folder)
        by_runs = Pinned(folder, 0, {})
    else:
        manifest = _decoded(folder, text, _Manifest)
        by_runs = Pinned(folder, manifest.number, manifest.tables, manifest.format)
    tables = tables_of(FORMAT)
    # Positions of the stream are there too.
    streamed = frozenset(folder.names(STREAMS)) & tables.keys()
    if not streamed:
        return by_runs
    there = {name: delta.opened_table(folder, tables[name]) for name in streamed}
    newest = {name: opened.version() for name, opened in there.items() if opened is not None}
    return replace(by_runs, versions={**by_runs.versions, **newest}, streamed=streamed)


def recovered(folder: Folder) -> tuple[Pinned, bool]:
    """Return the tables after the last run, and complete its commits if it was killed.

    Returns:
        The tables, and whether commits were completed.

    Raises:
        OtherFormatError: another version of this program wrote them.
    """
    now = pinned(folder)
    last = _unfinished(now)
    if last is None:
        return now, False
    text = folder.read(_record(last))
    return _finished(now, _decoded(folder, text or b"", _Record)), True


def refuse_earlier(tables: Pinned) -> None:
    """Check that a run can write to tables; readers can read an earlier format.

    Raises:
        OtherFormatError: the tables have an earlier format.
    """
    if tables.format != FORMAT:
        raise OtherFormatError(
            f"{tables.folder} has tables of format {tables.format}, and this version writes format"
            f" {FORMAT}. Upgrade them, which needs no logs:"
            f" `throttle-sidecar pipeline upgrade --out {tables.folder}`"
        )


def is_finished(tables: Pinned) -> bool:
    """Whether all recorded commits are done; otherwise the next run completes them."""
    return _unfinished(tables) is None


def begin(before: Pinned) -> bool:
    """Mark a folder without tables as a folder of batch runs.

    Returns:
        Whether the folder is new; then ``withdraw`` removes the mark if the run is refused.
    """
    record = _Record(FORMAT, 0, "", datetime.min.replace(tzinfo=UTC), [])
    return before.number == 0 and before.folder.create(_record(0), msgspec.json.encode(record))


def withdraw(before: Pinned) -> None:
    """Remove the mark of a new folder."""
    before.folder.remove(_record(0))


def commit(before: Pinned, changes: Sequence[Change], by: str, at: datetime) -> Pinned:
    """Commit all changes of a run.

    Args:
        before: the tables at the start of the run.
        changes: the changes of each table, in the order of their commits.
        by: a description of the run.
        at: the time, UTC.

    Raises:
        OutdatedError: another run has committed since the start; nothing is changed.
        BesideError: another program has committed to a table; the next run completes this run.
        NotWrittenError: a file is missing; nothing is changed.
    """
    folder = before.folder
    for change in changes:
        _refuse_missing(folder, change)
    record = _Record(FORMAT, before.number + 1, by, at, list(changes))
    path, text = _record(record.number), msgspec.json.encode(record)
    # If the store's response was lost, the client repeats the request and finds its own record, so
    # the content decides. Old records are removed, so a run that slept longer creates its own.
    is_made = folder.create(path, text) or folder.read(path) == text
    if not is_made or _last(folder) != record.number:
        raise OutdatedError(
            f"{folder}: another run has committed since this run began, so this run changed"
            " nothing; run the command again"
        )
    return _finished(before, record)


def append(
    folder: Folder,
    table: Table,
    files: Sequence[Written],
    transaction: tuple[str, int],
    at: datetime,
) -> bool:
    """Add a batch of a stream to a table, once.

    Args:
        folder: the folder of the tables.
        table: the table to write.
        files: the files of the batch.
        transaction: the id of the stream, and the number of the batch from 0.
        at: the time, UTC.

    Returns:
        Whether the batch was added; False if it was already there.
    """
    with storage_failures(str(folder)):
        _, is_new = _once(folder, delta.TableCommit(table, files, None, transaction, at))
    return is_new


def upkeep(tables: Pinned, names: Iterable[str], retained: timedelta) -> None:
    """Remove files that belong to no recent version, and files of killed runs.

    Args:
        tables: the current tables, whose files stay.
        names: the names of the tables to clean.
        retained: how long replaced versions stay.
    """
    folder = tables.folder
    for name in names:
        opened = delta.opened_table(folder, tables_of(FORMAT)[name])
        if opened is None:
            continue
        delta.clean(opened, retained, tables.versions.get(name))
    for record in folder.names(RECORDS)[:-1]:
        folder.remove(f"{RECORDS}/{record}")


def _finished(before: Pinned, record: _Record) -> Pinned:
    folder, versions = before.folder, dict(before.versions)
    tables = tables_of(record.format)
    with storage_failures(str(folder)):
        for change in record.changes:
            replaced = delta.replaced_rows(change.cluster, change.days)
            transaction = _APP + change.cluster, record.number
            made = delta.TableCommit(
                tables[change.table], change.files, replaced, transaction, record.at
            )
            opened, _ = _once(folder, made)
            versions[change.table] = opened.version()
    manifest = _Manifest(record.format, record.number, record.by, record.at, versions)
    folder.replace(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    return replace(before, number=record.number, versions=versions, format=record.format)


def _once(folder: Folder, made: delta.TableCommit) -> "tuple[DeltaTable, bool]":
    """Commit to a table unless it has the transaction; return the table, and whether it is new."""
    opened = delta.opened_table(folder, made.table)
    app, number = made.transaction
    known = None if opened is None else opened.transaction_version(app)
    if opened is not None and known is not None and known >= number:
        return opened, False
    return delta.commit_to(folder, opened, made), True


def _refuse_missing(folder: Folder, change: Change) -> None:
    """Check that files exist, because Delta would commit missing files."""
    within = f"{change.table}/"
    partitions = {file.path.rpartition("/")[0] for file in change.files}
    sizes: dict[str, int] = {}
    for partition in partitions:
        sizes |= folder.sizes(within + partition if partition else change.table)
    for file in change.files:
        if sizes.get(within + file.path) != file.bytes:
            raise NotWrittenError(
                f"{folder.uri(within + file.path)}: a task has written this file, but the driver"
                " can't see it; use --out with a folder that all of Spark's machines share, or with"
                " object storage"
            )


def _refuse_unmarked(folder: Folder) -> None:
    """Refuse tables without a mark, which an old version wrote before Delta."""
    names = {*folder.names()}
    if names.isdisjoint({RECORDS, STREAMS}) and not names.isdisjoint(tables_of(FORMAT)):
        raise OtherFormatError(
            f"{folder} has tables of an earlier version of this program, which are not Delta"
            " tables. Create them again from the logs, in another folder:"
            " `throttle-sidecar pipeline run --request-logs PATH --out DIR`"
        )


def _decoded(folder: Folder, text: bytes, kind: type[_T]) -> _T:
    try:
        document = msgspec.json.decode(text, type=dict)
        if document.get("format") in {*EARLIER, FORMAT}:
            return msgspec.convert(document, kind)
    except (ValueError, AttributeError) as error:
        raise OtherFormatError(f"{folder}/{MANIFEST} can't be read: {error}") from error
    raise OtherFormatError(
        f"{folder} has tables of format {document.get('format')}, and this version reads up to"
        f" {FORMAT}. A later version has written them; use that one"
    )


def _last(folder: Folder) -> int | None:
    """Return the number of the last record; None if there is none."""
    names = [name for name in folder.names(RECORDS) if name.endswith(".json")]
    return int(names[-1].removesuffix(".json")) if names else None


def _unfinished(tables: Pinned) -> int | None:
    """Return the number of a record with incomplete commits; None if there is none."""
    last = _last(tables.folder)
    return last if last is not None and last > tables.number else None


def _record(number: int) -> str:
    return f"{RECORDS}/{number:020}.json"
