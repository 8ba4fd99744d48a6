"""Rewrites tables of an earlier format, without the logs.

Only tables whose layout has changed are rewritten (``schemas.EARLIER``). The others stay as they
are, because added columns are null in earlier rows. The upgrade commits like a run: readers see the
tables before it or after it, and if it is killed, the next upgrade completes it.

Example: in format 2, silver_change had no days, so each run rewrote it whole. The upgrade to format
3 writes its rows to the folders of their days.
"""

import os
import socket
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from uuid import uuid4

from sidecar.errors import SidecarError
from usage_pipeline.runtime.object_storage import storage_failures
from usage_pipeline.silver.request_writer import with_day
from usage_pipeline.tables.commits import Change, Pinned, commit, recovered
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.lease import leased
from usage_pipeline.tables.parquet_files import NotWrittenError, Target, Writer
from usage_pipeline.tables.schemas import EARLIER, FORMAT, Table, tables_of
from usage_pipeline.tables.table_files import TableFile

_ROWS: Final = 1 << 17


class NoTablesError(SidecarError):
    """The folder has no tables."""


def upgrade(out: str, now: datetime) -> Mapping[str, int]:
    """Rewrite the tables of an earlier format.

    Args:
        out: the folder of the tables.
        now: the time, UTC.

    Returns:
        The number of rows of each rewritten table, by name.

    Raises:
        SidecarError: the tables can't be upgraded; they are unchanged.
    """
    folder = Folder.parse(out)
    if not folder.names():
        raise NoTablesError(f"{folder} has no tables; name their folder with --out")
    holder = f"upgrade by process {os.getpid()} on {socket.gethostname()}, since {now:%FT%TZ},"
    with storage_failures(), leased(folder, holder):
        before, _ = recovered(folder)
        if before.format not in EARLIER:
            return {}
        now_of = tables_of(FORMAT)
        changes = [
            change
            for earlier in EARLIER[before.format]
            for change in _rewritten(before, earlier, now_of[earlier.name])
        ]
        commit(before, changes, holder, now)
    rows: Counter[str] = Counter()
    for change in changes:
        rows[change.table] += sum(file.rows for file in change.files)
    return rows


def _rewritten(before: Pinned, earlier: Table, table: Table) -> list[Change]:
    """Write the rows of a table by their days, and return a change for each cluster."""
    run = uuid4().hex[:12]
    writers: dict[str, Writer] = {}
    for written in before.files(earlier):
        cluster = written.cluster
        if cluster not in writers:
            writers[cluster] = Target(before.folder, table, run, cluster).writer(0)
        for group in TableFile(before.folder, earlier, written).groups():
            for batch in group.batches(_ROWS, earlier.names):
                writers[cluster].write(with_day(batch))
    changes = []
    for cluster, writer in writers.items():
        files = writer.close()[table.name]
        if writer.problem is not None:
            raise NotWrittenError(f"{writer.problem}. Check the free space and the permissions")
        changes.append(Change(table.name, files, None, cluster))
    return changes
