"""Opens, commits to and cleans one Delta table. ``commits`` coordinates the tables of a run.

A commit applies to the version that was read, or is refused (``max_commit_retries=0``).
``commits`` describes the other checks against duplicate rows.

Example: ``commit_to(folder, None, TableCommit(...))`` creates a table with its first files.

Source: Delta's protocol, sections on transaction identifiers and on add; deltalake 1.6.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from sidecar.errors import SidecarError
from usage_pipeline.runtime.object_storage import storage_failures
from usage_pipeline.tables.arrow import arrow_schema
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import CLUSTER_ID, Table
from usage_pipeline.tables.table_files import Written

if TYPE_CHECKING:
    from deltalake import DeltaTable

_CONFIGURATION: Final = {"delta.checkpointInterval": "20"}
_COMPACTED_BYTES: Final = 1 << 27


class BesideError(SidecarError):
    """Another program has committed to a table at the same time."""


class OtherFormatError(SidecarError):
    """Another version of this program wrote the tables."""


RowFilters = list[tuple[str, str, str | list[str]]]
"""A predicate for deltalake."""


@dataclass(frozen=True, slots=True)
class TableCommit:
    """A commit to a table.

    Attributes:
        table: the table.
        files: the files to add.
        replaced: the rows that they replace (``replaced_rows``); None for none.
        transaction: the id of the application, and the number of its transaction.
        at: the time, UTC.
    """

    table: Table
    files: Sequence[Written]
    replaced: RowFilters | None
    transaction: tuple[str, int]
    at: datetime


def commit_to(folder: Folder, opened: "DeltaTable | None", made: TableCommit) -> "DeltaTable":
    """Commit to a table, and create it, or the columns that it lacks."""
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
            # A record of an earlier version has no statistics.
            stats=file.statistics or f'{{"numRecords": {file.rows}}}',
        )
        for file in made.files
    ]
    properties = CommitProperties(
        app_transactions=[Transaction(*made.transaction)], max_commit_retries=0
    )
    schema = Schema.from_arrow(arrow_schema(table.stored))
    if opened is None or opened.metadata().partition_columns != [*table.folders]:
        create_table_with_add_actions(
            folder.uri(table.name),
            schema,
            actions,
            mode="error" if opened is None else "overwrite",
            partition_by=list(table.folders),
            description=table.meaning,
            configuration=_CONFIGURATION,
            storage_options=folder.options,
            commit_properties=properties,
        )
        return DeltaTable(folder.uri(table.name), storage_options=folder.options)
    stored = {field.name for field in opened.schema().fields}
    try:
        if added := [field for field in schema.fields if field.name not in stored]:
            opened.alter.add_columns(
                added, commit_properties=CommitProperties(max_commit_retries=0)
            )
        opened.create_write_transaction(
            [*actions],
            "append" if made.replaced is None else "overwrite",
            opened.schema(),
            list(table.folders),
            partition_filters=made.replaced,
            commit_properties=properties,
        )
    except CommitFailedError as error:
        raise BesideError(
            f"{folder.uri(table.name)}: another program has committed at the same time; run the"
            " command again, which completes this run"
        ) from error
    opened.update_incremental()
    return opened


def replaced_rows(cluster: str, days: Sequence[str] | None) -> RowFilters:
    """Return the rows of some days of a cluster; None for all of its days."""
    of_cluster: RowFilters = [(CLUSTER_ID.name, "=", cluster)]
    return of_cluster if days is None else [*of_cluster, ("dt", "in", list(days))]


def opened_table(folder: Folder, table: Table, version: int | None = None) -> "DeltaTable | None":
    """Open a table; return None if it does not exist.

    Columns that this program has added since are missing, and read as null.
    """
    from deltalake import DeltaTable  # noqa: PLC0415 - of the driver alone
    from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415 - as above

    with storage_failures(str(folder)):
        try:
            return DeltaTable(
                folder.uri(table.name), version=version, storage_options=folder.options
            )
        except TableNotFoundError:
            return None


def files_in(opened: "DeltaTable | None") -> list[Written]:
    """Return the files of a version; none if there is no table."""
    if opened is None:
        return []
    import pyarrow as pa  # noqa: PLC0415 - as above

    actions = pa.table(opened.get_add_actions(flatten=True))
    names = opened.metadata().partition_columns
    values = [actions[f"partition.{name}"].to_pylist() for name in names]
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


def compact(folder: Folder, table: Table) -> None:
    """Merge the small files that a stream's batches have added."""
    from deltalake import CommitProperties  # noqa: PLC0415 - of the driver alone

    opened = opened_table(folder, table)
    if opened is not None:
        with storage_failures(str(folder)):
            opened.optimize.compact(
                target_size=_COMPACTED_BYTES,
                commit_properties=CommitProperties(max_commit_retries=0),
            )


def clean(opened: "DeltaTable", retained: timedelta, pinned: int | None) -> None:
    """Remove files that belong to no recent version.

    Args:
        opened: the table.
        retained: how long replaced versions stay.
        pinned: a version that stays regardless of its age; None for none.
    """
    with storage_failures(opened.table_uri):
        opened.vacuum(
            retention_hours=int(retained.total_seconds() // 3600),
            dry_run=False,
            enforce_retention_duration=False,
            full=True,
            keep_versions=None if pinned is None else [pinned],
        )
        opened.cleanup_metadata()
