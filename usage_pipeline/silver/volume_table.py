"""The volume history as a table, with one row for each volume and time slot.

A line of the history is an observation (``sidecar.history``): a sidecar's readings of all brokers.
Every sidecar writes about the same cluster, each at its own times. The readings of a volume in the
same ten seconds of the clock become one row, which has the latest reading. A line's time is that of
the whole observation, and a broker's answer may be up to 10 s earlier, the poll's deadline. So the
order of readings within 10 s is unknown anyway, and 1,000 sidecars make no more than six rows a
minute. Lines that a crash has cut off are left out and counted, and readings that can't be, such as
more available bytes than the total.

A line names its cluster by Kafka's id, unless an older sidecar wrote it, or the path of its file
names the cluster. Lines without a cluster belong to the only cluster that other lines name;
otherwise they belong to ``default``.

Example: three sidecars read broker 1's /d1 at 08:00:01, :04 and :11. The table has two rows, for
:04 and for :11.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from sidecar.errors import SidecarError
from usage_pipeline.ingest.clusters import ClusterError, cluster_name, cluster_of
from usage_pipeline.ingest.lines import Block, Unread, unpacked_blocks
from usage_pipeline.ingest.stored_logs import files_of
from usage_pipeline.runtime.addresses import address_of
from usage_pipeline.runtime.by_workers import Batches, by_workers
from usage_pipeline.runtime.filesystems import open_input
from usage_pipeline.tables.schemas import SILVER_VOLUME, UNNAMED

HISTORY_LINE: Final = (
    "time string, origin string, cluster_id string, brokers array<int>,"
    " volumes array<struct<broker_id:int,log_dir:string,"
    "total_bytes:bigint,available_bytes:bigint>>,"
    " offline array<struct<broker_id:int,log_dir:string>>, _corrupt_record string"
)
"""The schema of a line, in Spark's SQL. Other fields of later sidecars are ignored."""

SLOT_S: Final = 10
"""The length of a slot in which a volume has one row, in seconds; a divisor of a day."""

_READING: Final = (
    "named_struct('broker', entry.broker_id, 'log_dir', entry.log_dir, 'total_bytes', {total},"
    " 'available_bytes', {available}, 'offline', {offline})"
)
_ONLINE: Final = _READING.format(
    total="entry.total_bytes", available="entry.available_bytes", offline="false"
)
_OFFLINE: Final = _READING.format(
    total="CAST(NULL AS bigint)", available="CAST(NULL AS bigint)", offline="true"
)
_READINGS: Final = (
    f"if(is_read, concat(transform(coalesce(line.volumes, array()), entry -> {_ONLINE}),"
    f" transform(coalesce(line.offline, array()), entry -> {_OFFLINE})), array(NULL))"
)
"""The readings of a line; one without values if the line can't be read."""
LINES: Final = "lines that are cut off or have another form"
_DAMAGED: Final = "damaged file "
READINGS: Final = "readings without broker, log dir or available bytes between 0 and the total"
_FAULT: Final = (
    "CASE WHEN NOT is_read THEN unread WHEN broker IS NOT NULL AND log_dir IS NOT NULL"
    " AND (offline OR total_bytes >= 0 AND available_bytes BETWEEN 0 AND total_bytes)"
    f" THEN NULL ELSE '{READINGS}' END"
)


class NoHistoryError(SidecarError):
    """There is no volume history."""


@dataclass(frozen=True, slots=True)
class History:
    """The readings of a volume history; the caller releases ``readings`` after use.

    Attributes:
        readings: the columns of SILVER_VOLUME, ``cluster_id`` and ``fault``, persisted by Spark.
        clusters: cluster names by ``cluster_id``, which may be null; other lines are left out.
        days: by cluster, the days with readings.
        faults: the number of LINES and of READINGS that can't be used, and damaged files by name.
    """

    readings: DataFrame
    clusters: Mapping[str | None, str]
    days: Mapping[str, AbstractSet[date]]
    faults: Mapping[str, int]

    def readings_of(self, cluster: str) -> DataFrame:
        """Return the readings of a cluster."""
        ids = [id_ for id_, whose in self.clusters.items() if whose == cluster]
        is_its = sql.col("cluster_id").isin([id_ for id_ in ids if id_ is not None])
        if None in ids:
            is_its |= sql.col("cluster_id").isNull()
        return self.readings.where(is_its & sql.col("fault").isNull()).drop("cluster_id", "fault")


def volume_history(spark: SparkSession, path: str, cluster: str | None = None) -> History:
    """Read a history.

    Args:
        spark: the session whose workers read it.
        path: a file, a folder or a glob.
        cluster: the cluster's name, which replaces Kafka's id; None to use paths and lines.

    Raises:
        NoHistoryError: there are no files, or nothing in them can be used.
        ClusterError: the lines are of several other clusters.
    """
    readings = _readings(history_lines(spark, path, cluster)).persist()
    counted = readings.groupBy("cluster_id", "dt", "fault").count().collect()
    days: dict[str, set[date]] = {}
    faults: Counter[str] = Counter()
    try:
        clusters = clusters_of({row["cluster_id"] for row in counted}, cluster)
        for row in counted:
            if row["cluster_id"] in clusters and row["fault"] is None:
                days.setdefault(clusters[row["cluster_id"]], set()).add(row["dt"])
            elif row["cluster_id"] in clusters:
                faults[row["fault"]] += row["count"]
        if faults and not days:
            counts = ", ".join(f"{count:,} {what}" for what, count in sorted(faults.items()))
            raise NoHistoryError(f"{path} has no reading of a volume, only {counts}")
    except SidecarError:
        readings.unpersist()
        raise
    return History(readings, clusters, days, faults)


def clusters_of(ids: AbstractSet[str | None], cluster: str | None) -> Mapping[str | None, str]:
    """Map the clusters in lines to cluster names.

    Args:
        ids: the cluster ids of lines; None stands for lines without one.
        cluster: the cluster to read; None for all clusters.

    Raises:
        ClusterError: the lines name several clusters, and not this one.
    """
    named = sorted(cluster_name(id_) for id_ in ids if id_ is not None)
    if cluster is None:
        default = named[0] if len(named) == 1 else UNNAMED
        return {id_: id_ or default for id_ in ids}
    if cluster not in named and len(named) > 1:
        raise ClusterError(f"the history is of the clusters {', '.join(named)}, not of {cluster}")
    return {id_: cluster for id_ in ids if cluster not in named or id_ in (None, cluster)}


def history_lines(spark: SparkSession, path: str, cluster: str | None = None) -> DataFrame:
    """Read the lines of history files, compressed or not.

    Args:
        spark: the session whose workers read the files.
        path: a file, a folder or a glob.
        cluster: leave out files whose paths name another cluster; None to read all files.

    Returns:
        The columns ``value`` and ``cluster``, the name in the file's path, or null without one.

    Raises:
        NoHistoryError: there are no files.
    """
    options = address_of(path).options
    # A sidecar packs a file under the name .tmp.
    whole = (file for file in sorted(files_of(path)) if not file.endswith(".tmp"))
    named = ((file, cluster_of(file)) for file in whole)
    files = [(file, name) for file, name in named if cluster is None or name in (None, cluster)]
    if not files:
        raise NoHistoryError(f"{path}: there is no volume history; name its folder")
    cores = spark.sparkContext.defaultParallelism
    tasks = [some for some in (files[task :: 2 * cores] for task in range(2 * cores)) if some]

    def read(_: int, some: Sequence[tuple[str, str | None]]) -> Batches:
        for name, of_path in some:
            # One file at a time: an hour's history, a few megabytes.
            lines = _lines_of(name, options)
            clusters = pa.repeat(pa.scalar(of_path, pa.string()), len(lines))
            yield pa.RecordBatch.from_arrays(
                [clusters, pa.array(lines, pa.string())], ["cluster", "value"]
            )

    return by_workers(spark, tasks, read, "cluster string, value string")


def _lines_of(name: str, options: str) -> list[str]:
    """Return the lines of a file, and one about damage; none if it was removed since the listing.

    A sidecar may have packed the file since then.
    """
    for path in (name, f"{name}.gz"):
        try:
            with open_input(path, options) as opened:
                if not path.endswith(".gz"):
                    return opened.read().decode(errors="replace").splitlines()
                read = list(unpacked_blocks(opened))
        except FileNotFoundError:
            continue
        except PermissionError as error:
            raise NoHistoryError(f"{path}: this user may not read it") from error
        text = b"".join(block.data for block in read if isinstance(block, Block))
        damage = [f"{_DAMAGED}{path} ({each.reason})" for each in read if isinstance(each, Unread)]
        return [*text.decode(errors="replace").splitlines(), *damage]
    return []


def one_per_slot(readings: DataFrame) -> DataFrame:
    """Make SILVER_VOLUME from readings, which may be of the same times, such as old and new rows.

    Args:
        readings: the columns of SILVER_VOLUME except ``dt``.
    """
    fields = ["observed_ts", "offline", "total_bytes", "available_bytes"]
    return SILVER_VOLUME.select(
        readings.withColumn("slot", sql.expr(f"unix_seconds(observed_ts) DIV {SLOT_S}"))
        .groupBy("broker", "log_dir", "slot")
        .agg(sql.max(sql.struct(*fields)).alias("latest"))
        .select("broker", "log_dir", "latest.*")
        .withColumn("dt", sql.to_date("observed_ts"))
    )


def _readings(lines: DataFrame) -> DataFrame:
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt_record"}
    return (
        lines.where("trim(value) != ''")
        .withColumn("line", sql.from_json("value", HISTORY_LINE, options))
        .withColumn("observed_ts", sql.expr("TRY_CAST(line.time AS timestamp)"))
        .withColumn("cluster_id", sql.coalesce("cluster", "line.cluster_id"))
        .withColumn("dt", sql.to_date("observed_ts"))
        .withColumn("unread", sql.expr(f"if(startswith(value, '{_DAMAGED}'), value, '{LINES}')"))
        .withColumn("is_read", sql.expr("line._corrupt_record IS NULL AND dt IS NOT NULL"))
        .selectExpr("cluster_id", "dt", "observed_ts", "is_read", "unread", f"inline({_READINGS})")
        .withColumn("fault", sql.expr(_FAULT))
        .drop("is_read", "unread")
    )
