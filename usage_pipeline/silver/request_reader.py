"""Reads some columns and days of silver_request from Parquet, in a worker.

Example: ``rows(files, ("user", "quota_ts"), frozenset({date(2026, 11, 21)}))`` gives batches of
both columns, for the requests that were charged on that day.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Final

import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.charging import flags, micros
from usage_pipeline.kernels.numbered import coded
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.tables.apis import QUOTA_APIS, TOPIC_APIS
from usage_pipeline.tables.schemas import SILVER_CHANGE
from usage_pipeline.tables.table_files import RowGroup, TableFile

ADMINS_APIS: Final = frozenset({*TOPIC_APIS, *QUOTA_APIS})
_ROWS: Final = 1 << 17
"""Rows of a batch, about 15 MB."""
_WHOLE: Final = SILVER_CHANGE.names
_NAMES: Final = ("user", "client_id", "api", "src_file")
"""Columns with few different values, which are read as dictionaries."""
OF_BROKERS: Final = ("user", "client_id", "api", "api_version", "is_follower", "quota_ts")
"""The columns that show which clients are brokers and controllers."""
OF_LINES: Final = ("broker", "src_file", "log_ts", "quota_ts")
"""The columns that show how well the lines of each broker were read."""
_OF_BROKERS: Final = frozenset(
    {
        *("BROKER_HEARTBEAT", "BROKER_REGISTRATION", "CONTROLLER_REGISTRATION"),
        *("ALTER_PARTITION", "ALLOCATE_PRODUCER_IDS", "ASSIGN_REPLICAS_TO_DIRS", "ENVELOPE"),
        *("CONTROLLED_SHUTDOWN", "LEADER_AND_ISR", "STOP_REPLICA", "UPDATE_METADATA"),
        *("VOTE", "BEGIN_QUORUM_EPOCH", "END_QUORUM_EPOCH", "FETCH_SNAPSHOT"),
        *("WRITE_TXN_MARKERS", "INITIALIZE_SHARE_GROUP_STATE", "READ_SHARE_GROUP_STATE"),
        *("WRITE_SHARE_GROUP_STATE", "DELETE_SHARE_GROUP_STATE", "READ_SHARE_GROUP_STATE_SUMMARY"),
    }
)
"""What no client sends."""
_OF_BROKERS_FROM: Final = 4
"""The first version of ADD_PARTITIONS_TO_TXN that no client sends."""
_PLAIN: Final = dict.fromkeys(_NAMES, pa.string())
_US_PER_S: Final = 1_000_000
_US_PER_DAY: Final = 86_400 * _US_PER_S
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC).date()


def rows(
    files: Iterable[TableFile], columns: Sequence[str], days: frozenset[date] | None
) -> Batches:
    """Read the requests that were charged on some days, or on all; columns include ``quota_ts``."""
    for group in _groups(files):
        if days is None or _may_be_of(group, days):
            for batch in group.batches(_ROWS, columns):
                is_charged = _is_charged_on(batch, days)
                yield batch if is_charged.all() else batch.filter(pa.array(is_charged))


def admins_rows(files: Iterable[TableFile], size: int = _ROWS) -> Batches:
    """Read all columns of the controllers' lines about topics and quotas."""
    for group in _groups(files):
        # Most groups have no such line. Two columns of thirty are enough to find out.
        of_admins = [_is_of_admins(batch) for batch in group.batches(size, ("api", "is_forwarded"))]
        if not any(each.any() for each in of_admins):
            continue
        is_of_admins, begin = np.concatenate(of_admins), 0
        for batch in group.batches(size, _WHOLE):
            selected = batch.filter(pa.array(is_of_admins[begin : begin + batch.num_rows]))
            begin += batch.num_rows
            plain = [selected[name].cast(_PLAIN.get(name, selected[name].type)) for name in _WHOLE]
            yield pa.RecordBatch.from_arrays(plain, list(_WHOLE))


def charged_days(batches: Batches) -> Batches:
    """Return the days on which requests were charged, once for each batch that has the day."""
    for batch in batches:
        days = np.unique(micros(batch, "quota_ts") // _US_PER_DAY).astype(np.int32)
        yield pa.RecordBatch.from_arrays([pa.array(days).cast(pa.date32())], ["day"])


def brokers_clients(batches: Batches) -> Batches:
    """Return the users and client-ids of requests that only brokers and controllers send."""
    for batch in batches:
        names, api = coded(batch["api"])
        is_brokers = np.array([name in _OF_BROKERS for name in names], np.bool_)[api]
        is_brokers |= flags(batch, "is_follower", missing=False)
        versions = batch["api_version"].to_numpy(zero_copy_only=False)
        is_check = np.array([name == "ADD_PARTITIONS_TO_TXN" for name in names], np.bool_)[api]
        is_brokers |= is_check & (versions >= _OF_BROKERS_FROM)
        columns = [batch[name].cast(pa.string()) for name in ("user", "client_id")]
        theirs = pa.Table.from_arrays(columns, ["user", "client_id"]).filter(pa.array(is_brokers))
        yield from theirs.group_by(["user", "client_id"]).aggregate([]).to_batches()


def read_lines(batches: Batches) -> Batches:
    """Return how many requests of each log file were read, and whether all have whole seconds."""
    for batch in batches:
        is_whole = pa.array(micros(batch, "log_ts") % _US_PER_S == 0)
        columns = [batch["broker"], batch["src_file"].cast(pa.string()), is_whole]
        named = pa.Table.from_arrays(columns, ["broker", "src_file", "is_whole"])
        files = named.group_by(["broker", "src_file"])
        yield from files.aggregate([([], "count_all"), ("is_whole", "all")]).to_batches()


def _is_of_admins(batch: pa.RecordBatch) -> np.ndarray:
    names, api = coded(batch["api"])
    of_admins = np.array([name in ADMINS_APIS for name in names], np.bool_)[api]
    return of_admins & flags(batch, "is_forwarded", missing=False)


def _groups(files: Iterable[TableFile]) -> Iterator[RowGroup]:
    for file in files:
        yield from file.groups(_NAMES)


def _may_be_of(group: RowGroup, days: frozenset[date]) -> bool:
    """Return whether a group may have requests charged on some days, by the file's statistics.

    The files of the following day have some of them too, nearly all in their first groups.
    """
    bounds = group.statistics("quota_ts")
    if bounds is None:
        return True
    first, last = bounds.min.date(), bounds.max.date()
    return any(first <= day <= last for day in days)


def _is_charged_on(batch: pa.RecordBatch, days: frozenset[date] | None) -> np.ndarray:
    if days is None:
        return np.ones(batch.num_rows, np.bool_)
    numbers = np.array([(day - _EPOCH).days for day in days], np.int64)
    return np.isin(micros(batch, "quota_ts") // _US_PER_DAY, numbers)
