"""The one place where tables are committed: all that a run has written, or none of it.

Each table is a Delta table, and each of those has commits of its own. So a run first makes its
record, ``_commits/00000000000000000007.json``, which has all that is to be committed. The record is
made in one step that succeeds once, so of two runs that began with the same tables one makes it,
and the other changes nothing. With it the run is decided: the commits of its tables follow, each of
which has the record's number as its transaction, and what was done already is passed over. Last
comes ``_manifest.json`` with the versions of the tables that belong together. A run that is killed
in between is finished by the next one, before that reads anything.

Before anything is written to a folder, record 0 marks it (``begin``).

Readers take the versions of the manifest (``pinned``). Upkeep removes files that no version of the
last days has, and never one of those in the manifest.

Example: a run of 20 and 21 November of two tables makes record 7, replaces both days in each table,
and the manifest says silver_request 12, gold_usage_1s 9. Killed after the first table, readers see
11 and 8 until the next run has made the second.

Delta-rs lets through what would double rows: a day that two writers add, an overwrite beside an
append, a transaction that was there already, a file that is not there. Against that: the record's
one step, ``max_commit_retries=0`` (a commit is of the version that was read, or refused), the
transaction's number, and a look at each file before the record is made.

Source: Delta's protocol, sections on transaction identifiers and on add; deltalake 1.6.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from sidecar.errors import SidecarError
from sidecar.pipeline.runtime.object_storage import storage_failures
from sidecar.pipeline.tables.arrow import arrow_schema
from sidecar.pipeline.tables.folder import Folder
from sidecar.pipeline.tables.parquet_files import NotWrittenError, Written
from sidecar.pipeline.tables.schemas import CLUSTER_ID, TABLES, UNNAMED, Table

if TYPE_CHECKING:
    from deltalake import DeltaTable

MANIFEST: Final = "_manifest.json"
RECORDS: Final = "_commits"
"""The folder of batch runs' records."""
STREAMS: Final = "_streams"
"""The folder where streams say which table is whose."""
_FORMAT: Final = 2
"""Of the record, the manifest and the tables' columns; another one is refused."""
_APP: Final = "throttle-sidecar/"
"""Before a cluster's name: the transactions of a table are of each cluster for itself."""
_CONFIGURATION: Final = {"delta.checkpointInterval": "20"}
_COMPACTED_BYTES: Final = 1 << 27
_BY_NAME: Final = {table.name: table for table in TABLES}
_T = TypeVar("_T")


class OutdatedError(SidecarError):
    """Another run has committed since this one began."""


class BesideError(SidecarError):
    """Somebody else has committed to a table in the same moment."""


class OtherFormatError(SidecarError):
    """The tables were written by another version of this program."""


class Change(msgspec.Struct, frozen=True):
    """What a run has written of a cluster's rows of a table.

    Attributes:
        table: its name.
        files: that it has written.
        days: that they replace, as 2026-11-21; None: all of the cluster's.
        cluster: whose rows they are.
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
    """Tables that belong together; each is opened once, when it is first looked at.

    Attributes:
        folder: with the tables.
        number: of the run that has made the last of them; 0: there are none.
        versions: of each table that is there, by its name.
    """

    folder: Folder
    number: int
    versions: Mapping[str, int]
    _there: dict[str, "tuple[DeltaTable | None, Sequence[Written]]"] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def files(self, table: Table) -> Sequence[Written]:
        """The files of a table, of all clusters; none where it isn't there."""
        return self._looked_at(table)[1]

    def clusters(self) -> list[str]:
        """Whose rows there are, in any table."""
        return sorted({file.cluster for table in TABLES for file in self.files(table)})

    def has_written(self, table: Table, cluster: str) -> bool:
        """Whether a run has ever written a cluster's rows of a table, were there none."""
        opened, _ = self._looked_at(table)
        return opened is not None and opened.transaction_version(_APP + cluster) is not None

    def _looked_at(self, table: Table) -> "tuple[DeltaTable | None, Sequence[Written]]":
        if table.name not in self._there:
            version = self.versions.get(table.name)
            opened = None if version is None else _opened(self.folder, table, version)
            self._there[table.name] = opened, _files(opened, table)
        return self._there[table.name]


def pinned(folder: Folder) -> Pinned:
    """The tables as readers see them.

    Raises:
        OtherFormatError: they are of another version of this program.
    """
    text = folder.read(MANIFEST)
    if text is None:
        _refuse_earlier(folder)
        return Pinned(folder, 0, {})
    manifest = _decoded(folder, text, _Manifest)
    return Pinned(folder, manifest.number, manifest.tables)


def newest(folder: Folder) -> Pinned:
    """The tables as readers see them, of batch runs or of a stream.

    A stream's tables have no manifest: each is by itself, and as new as it can be.

    Raises:
        OtherFormatError: they are of another version of this program.
    """
    now = pinned(folder)
    if STREAMS not in folder.names():
        return now
    there = {table.name: _opened(folder, table) for table in TABLES}
    versions = {name: opened.version() for name, opened in there.items() if opened is not None}
    return Pinned(folder, 0, versions)


def recovered(folder: Folder) -> tuple[Pinned, bool]:
    """The tables after the last run, whose commits are finished first if it was killed in them.

    Returns:
        The tables, and whether there was something to finish.

    Raises:
        OtherFormatError: they are of another version of this program.
    """
    now = pinned(folder)
    last = _unfinished(now)
    if last is None:
        return now, False
    text = folder.read(_record(last))
    return _finished(now, _decoded(folder, text or b"", _Record)), True


def is_finished(tables: Pinned) -> bool:
    """Whether these are all that was decided; else the next run finishes one that was killed."""
    return _unfinished(tables) is None


def begin(before: Pinned) -> bool:
    """Marks a folder without tables as one of batch runs, before files are written there.

    Returns:
        Whether it is new; then ``withdraw`` takes the mark away if the run is refused.
    """
    record = _Record(_FORMAT, 0, "", datetime.min.replace(tzinfo=UTC), [])
    return before.number == 0 and before.folder.create(_record(0), msgspec.json.encode(record))


def withdraw(before: Pinned) -> None:
    """Takes the mark of a new folder away."""
    before.folder.remove(_record(0))


def commit(before: Pinned, changes: Sequence[Change], by: str, at: datetime) -> Pinned:
    """Commits all that a run has written.

    Args:
        before: the tables with which the run began.
        changes: of each table that it has written, in the order in which they are committed.
        by: who the run is, for a person.
        at: when, UTC.

    Raises:
        OutdatedError: another run has committed since; nothing is changed.
        BesideError: somebody who is no run of this program has committed to a table; the next run
            finishes this one.
        NotWrittenError: a file is not there; nothing is changed.
    """
    folder = before.folder
    for change in changes:
        _refuse_missing(folder, change)
    record = _Record(_FORMAT, before.number + 1, by, at, list(changes))
    path, text = _record(record.number), msgspec.json.encode(record)
    # A store whose answer was lost is asked once more, and then has it already: so what is there
    # counts. Older records are removed in time: a run that slept so long would make its own again.
    is_made = folder.create(path, text) or folder.read(path) == text
    if not is_made or _last(folder) != record.number:
        raise OutdatedError(
            f"{folder}: another run has committed since this one began, so this one has changed"
            " nothing: run it again"
        )
    return _finished(before, record)


def append(
    folder: Folder,
    table: Table,
    files: Sequence[Written],
    transaction: tuple[str, int],
    at: datetime,
) -> bool:
    """Adds a stream's batch to a table, once.

    Args:
        folder: with the tables.
        table: that is written.
        files: of the batch.
        transaction: the stream's id, and the batch's number, from 0.
        at: when, UTC.

    Returns:
        Whether it was added; False: it had been before.
    """
    with storage_failures(str(folder)):
        opened = _opened(folder, table)
        known = None if opened is None else opened.transaction_version(transaction[0])
        if known is not None and known >= transaction[1]:
            return False
        _commit(folder, opened, _Commit(table, files, None, transaction, at))
        return True


def compact(folder: Folder, table: Table) -> None:
    """Brings small files of a stream together, those that its batches have added."""
    from deltalake import CommitProperties  # noqa: PLC0415 - of the driver alone

    opened = _opened(folder, table)
    if opened is not None:
        with storage_failures(str(folder)):
            opened.optimize.compact(
                target_size=_COMPACTED_BYTES,
                commit_properties=CommitProperties(max_commit_retries=0),
            )


def upkeep(tables: Pinned, names: Iterable[str], retained: timedelta) -> None:
    """Removes files that no version of the last days has, and what killed runs have left.

    Args:
        tables: as they are now; nothing of their versions is removed.
        names: of the tables that are looked after.
        retained: how long versions are retained that were replaced.
    """
    folder = tables.folder
    for name in names:
        opened = _opened(folder, _BY_NAME[name])
        if opened is None:
            continue
        with storage_failures(str(folder)):
            opened.vacuum(
                retention_hours=int(retained.total_seconds() // 3600),
                dry_run=False,
                enforce_retention_duration=False,
                full=True,
                keep_versions=[tables.versions[name]] if name in tables.versions else None,
            )
            opened.cleanup_metadata()
    for record in folder.names(RECORDS)[:-1]:
        folder.remove(f"{RECORDS}/{record}")


def _finished(before: Pinned, record: _Record) -> Pinned:
    folder = before.folder
    versions = dict(before.versions)
    with storage_failures(str(folder)):
        for change in record.changes:
            table = _BY_NAME[change.table]
            opened = _opened(folder, table)
            app = _APP + change.cluster
            known = None if opened is None else opened.transaction_version(app)
            if opened is None or known is None or known < record.number:
                replaced = _Replaced(change.cluster, change.days)
                made = _Commit(table, change.files, replaced, (app, record.number), record.at)
                opened = _commit(folder, opened, made)
            versions[table.name] = opened.version()
    manifest = _Manifest(_FORMAT, record.number, record.by, record.at, versions)
    folder.replace(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    return Pinned(folder, record.number, versions)


@dataclass(frozen=True, slots=True)
class _Replaced:
    """The rows of a table that a commit replaces: a cluster's, of some days; None: of all."""

    cluster: str
    days: Sequence[str] | None

    def filters(self) -> list[tuple[str, str, str | list[str]]]:
        of_cluster: tuple[str, str, str | list[str]] = (CLUSTER_ID.name, "=", self.cluster)
        return [of_cluster] if self.days is None else [of_cluster, ("dt", "in", list(self.days))]


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit to a table.

    Attributes:
        table: that is committed to.
        files: that are added.
        replaced: the rows that they replace; None: none.
        transaction: the number of an app's.
        at: when, UTC.
    """

    table: Table
    files: Sequence[Written]
    replaced: _Replaced | None
    transaction: tuple[str, int]
    at: datetime


def _commit(folder: Folder, opened: "DeltaTable | None", made: _Commit) -> "DeltaTable":
    """Commits to a table, which is made if it isn't there."""
    from deltalake import (  # noqa: PLC0415 - of the driver alone
        CommitProperties,
        DeltaTable,
        Schema,
        Transaction,
    )
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 - as above
    from deltalake.transaction import (  # noqa: PLC0415 - as above
        AddAction,
        create_table_with_add_actions,
    )

    table = made.table
    actions = [
        AddAction(
            path=file.path,
            size=file.bytes,
            partition_values=dict(zip(table.folders, file.values, strict=True)),
            modification_time=int(made.at.timestamp() * 1000),
            data_change=True,
            stats=msgspec.json.encode({"numRecords": file.rows}).decode(),
        )
        for file in made.files
    ]
    properties = CommitProperties(
        app_transactions=[Transaction(*made.transaction)], max_commit_retries=0
    )
    schema = Schema.from_arrow(arrow_schema(table.stored))
    if opened is None:
        create_table_with_add_actions(
            folder.uri(table.name),
            schema,
            actions,
            mode="error",
            partition_by=list(table.folders),
            description=table.meaning,
            configuration=_CONFIGURATION,
            storage_options=folder.options,
            commit_properties=properties,
        )
        return DeltaTable(folder.uri(table.name), storage_options=folder.options)
    try:
        opened.create_write_transaction(
            [*actions],
            "append" if made.replaced is None else "overwrite",
            schema,
            list(table.folders),
            partition_filters=None if made.replaced is None else made.replaced.filters(),
            commit_properties=properties,
        )
    except CommitFailedError as error:
        raise BesideError(
            f"{folder.uri(table.name)}: somebody else has committed to it at this moment: run the"
            " command again, which finishes what this one has begun"
        ) from error
    opened.update_incremental()
    return opened


def _opened(folder: Folder, table: Table, version: int | None = None) -> "DeltaTable | None":
    """A table; None where there is none."""
    from deltalake import DeltaTable  # noqa: PLC0415 - of the driver alone
    from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415 - as above

    with storage_failures(str(folder)):
        try:
            opened = DeltaTable(
                folder.uri(table.name), version=version, storage_options=folder.options
            )
        except TableNotFoundError:
            return None
    # A stream's tables have no manifest that would say so.
    if [field.name for field in opened.schema().fields] != [one.name for one in table.stored]:
        raise _other_format(folder, f"{table.name} has other columns than this one's")
    return opened


def _files(opened: "DeltaTable | None", table: Table) -> list[Written]:
    if opened is None:
        return []
    import pyarrow as pa  # noqa: PLC0415 - as above

    actions = pa.table(opened.get_add_actions(flatten=True))
    values = [actions[f"partition.{name}"].to_pylist() for name in table.folders]
    return [
        Written(path, tuple(map(str, of_partition)), rows, size)
        for path, rows, size, *of_partition in zip(
            actions["path"].to_pylist(),
            actions["num_records"].to_pylist(),
            actions["size_bytes"].to_pylist(),
            *values,
            strict=True,
        )
    ]


def _refuse_missing(folder: Folder, change: Change) -> None:
    """Delta commits a file that isn't there, and readers find out."""
    within = f"{change.table}/"
    partitions = {file.path.rpartition("/")[0] for file in change.files}
    found: dict[str, int] = {}
    for partition in partitions:
        found |= folder.sizes(within + partition if partition else change.table)
    for file in change.files:
        if found.get(within + file.path) != file.bytes:
            raise NotWrittenError(
                f"{folder.uri(within + file.path)}: a task has written it, and it is not there: do"
                " all of Spark's machines see the same folder? If not, name one in object storage"
                " with --out"
            )


def _refuse_earlier(folder: Folder) -> None:
    """Refuses tables without a mark: those from before they were Delta tables."""
    names = {*folder.names()}
    if names.isdisjoint({RECORDS, STREAMS}) and not names.isdisjoint(_BY_NAME):
        raise OtherFormatError(
            f"{folder} has tables of an earlier version of this program, which were no Delta"
            " tables. Make them again from the logs, in a folder of their own:"
            " `throttle-sidecar pipeline run --request-logs PATH --out DIR`"
        )


def _decoded(folder: Folder, text: bytes, kind: type[_T]) -> _T:
    try:
        found = msgspec.json.decode(text, type=dict)
        if found.get("format") == _FORMAT:
            return msgspec.convert(found, kind)
    except (msgspec.MsgspecError, AttributeError) as error:
        raise OtherFormatError(f"{folder}/{MANIFEST} can't be read: {error}") from error
    raise _other_format(folder, f"format {found.get('format')}; this one has {_FORMAT}")


def _other_format(folder: Folder, how: str) -> OtherFormatError:
    return OtherFormatError(
        f"{folder} has tables of another version of this program ({how}). Make them again from the"
        " logs, in a folder of their own:"
        " `throttle-sidecar pipeline run --request-logs PATH --out DIR`"
    )


def _last(folder: Folder) -> int | None:
    """The number of the last record; None for none."""
    names = [name for name in folder.names(RECORDS) if name.endswith(".json")]
    return int(names[-1].removesuffix(".json")) if names else None


def _unfinished(tables: Pinned) -> int | None:
    """The number of a record whose run was killed before all was committed; None for none."""
    last = _last(tables.folder)
    return last if last is not None and last > tables.number else None


def _record(number: int) -> str:
    return f"{RECORDS}/{number:020}.json"
