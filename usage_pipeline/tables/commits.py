"""The one place that decides what is committed: all that a run has written, or none of it.

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
one step, commits of the version that was read alone (``delta``), the transaction's number, and a
look at each file before the record is made.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from sidecar.errors import SidecarError
from usage_pipeline.runtime.object_storage import storage_failures
from usage_pipeline.tables import delta
from usage_pipeline.tables.delta import OtherFormatError
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.parquet_files import NotWrittenError
from usage_pipeline.tables.schemas import TABLES, UNNAMED, Table
from usage_pipeline.tables.table_files import Written

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
_BY_NAME: Final = {table.name: table for table in TABLES}
_T = TypeVar("_T")


class OutdatedError(SidecarError):
    """Another run has committed since this one began."""


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
            opened = None if version is None else delta.opened_table(self.folder, table, version)
            self._there[table.name] = opened, delta.files_in(opened, table)
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
    there = {table.name: delta.opened_table(folder, table) for table in TABLES}
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
        opened = delta.opened_table(folder, table)
        known = None if opened is None else opened.transaction_version(transaction[0])
        if known is not None and known >= transaction[1]:
            return False
        delta.commit_to(folder, opened, delta.TableCommit(table, files, None, transaction, at))
        return True


def upkeep(tables: Pinned, names: Iterable[str], retained: timedelta) -> None:
    """Removes files that no version of the last days has, and what killed runs have left.

    Args:
        tables: as they are now; nothing of their versions is removed.
        names: of the tables that are looked after.
        retained: how long versions are retained that were replaced.
    """
    folder = tables.folder
    for name in names:
        opened = delta.opened_table(folder, _BY_NAME[name])
        if opened is None:
            continue
        delta.clean(opened, retained, tables.versions.get(name))
    for record in folder.names(RECORDS)[:-1]:
        folder.remove(f"{RECORDS}/{record}")


def _finished(before: Pinned, record: _Record) -> Pinned:
    folder = before.folder
    versions = dict(before.versions)
    with storage_failures(str(folder)):
        for change in record.changes:
            table = _BY_NAME[change.table]
            opened = delta.opened_table(folder, table)
            app = _APP + change.cluster
            known = None if opened is None else opened.transaction_version(app)
            if opened is None or known is None or known < record.number:
                replaced = delta.Replaced(change.cluster, change.days)
                made = delta.TableCommit(
                    table, change.files, replaced, (app, record.number), record.at
                )
                opened = delta.commit_to(folder, opened, made)
            versions[table.name] = opened.version()
    manifest = _Manifest(_FORMAT, record.number, record.by, record.at, versions)
    folder.replace(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    return Pinned(folder, record.number, versions)


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
    raise delta.other_format(folder, f"format {found.get('format')}; this one has {_FORMAT}")


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
