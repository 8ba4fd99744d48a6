"""The volume history as a table: one row for a volume and a time, however many sidecars saw it.

A line of the history is an observation (``sidecar.history``): what a sidecar saw of all brokers.
Every sidecar writes the same cluster, each at its own times. Readings of a volume in the same ten
seconds of the clock are one row, the latest of them: a line's time is that of the whole
observation, which a broker's answer may precede by the poll's deadline, 10 s, so readings that are
closer than that can't be ordered anyhow; and 1,000 sidecars make no more rows than six a minute. A
line that a crash has torn is passed over.

A line names its cluster by Kafka's id, since the sidecar's version that has it, or its file's path
does; lines that do not are of the only cluster that others name, else of ``default``.

Example: three sidecars see broker 1's /d1 at 08:00:01, :04 and :11: two rows, of :04 and of :11.
"""

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
"""A line, in Spark's SQL. What else a later sidecar writes is passed over."""

SLOT_S: Final = 10
"""Seconds of the clock in which a volume has one row; a divisor of a day's."""

_READING: Final = (
    "named_struct('broker', one.broker_id, 'log_dir', one.log_dir, 'total_bytes', {total},"
    " 'available_bytes', {available}, 'offline', {offline})"
)
_ONLINE: Final = _READING.format(
    total="one.total_bytes", available="one.available_bytes", offline="false"
)
_OFFLINE: Final = _READING.format(
    total="CAST(NULL AS bigint)", available="CAST(NULL AS bigint)", offline="true"
)
_READINGS: Final = (
    f"concat(transform(coalesce(line.volumes, array()), one -> {_ONLINE}),"
    f" transform(coalesce(line.offline, array()), one -> {_OFFLINE}))"
)


class NoHistoryError(SidecarError):
    """There is no volume history."""


@dataclass(frozen=True, slots=True)
class History:
    """The readings of a volume history, to be released when they are not needed any more.

    Attributes:
        readings: with the columns of SILVER_VOLUME and ``cluster_id``, retained by Spark.
        clusters: by what is in ``cluster_id``, null too; what is left out is nobody's.
        days: that each cluster has readings of.
    """

    readings: DataFrame
    clusters: Mapping[str | None, str]
    days: Mapping[str, AbstractSet[date]]

    def of(self, cluster: str) -> DataFrame:
        """The readings of a cluster."""
        ids = [id_ for id_, whose in self.clusters.items() if whose == cluster]
        is_its = sql.col("cluster_id").isin([id_ for id_ in ids if id_ is not None])
        if None in ids:
            is_its |= sql.col("cluster_id").isNull()
        return self.readings.where(is_its).drop("cluster_id")


def volume_history(spark: SparkSession, path: str, cluster: str | None = None) -> History:
    """Reads a history.

    Args:
        spark: whose workers do it.
        path: of a file, a folder or a glob.
        cluster: whose it is, whatever Kafka's id of it is; None: as paths and lines say.

    Raises:
        NoHistoryError: there are no files.
        ClusterError: its lines are of several clusters, and none of them is this one.
    """
    readings = _readings(history_lines(spark, path, cluster)).persist()
    found = readings.select("cluster_id", "dt").distinct().collect()
    try:
        clusters = clusters_of({row["cluster_id"] for row in found}, cluster)
    except ClusterError:
        readings.unpersist()
        raise
    days: dict[str, set[date]] = {}
    for row in found:
        if row["cluster_id"] in clusters:
            days.setdefault(clusters[row["cluster_id"]], set()).add(row["dt"])
    return History(readings, clusters, days)


def clusters_of(ids: AbstractSet[str | None], cluster: str | None) -> Mapping[str | None, str]:
    """Whose lines are that name some clusters; None: that name none.

    Args:
        ids: that lines name.
        cluster: whose they are; None: as they say.

    Raises:
        ClusterError: they name several, and not this one.
    """
    named = sorted(cluster_name(id_) for id_ in ids if id_ is not None)
    if cluster is None:
        nobodys = named[0] if len(named) == 1 else UNNAMED
        return {id_: id_ or nobodys for id_ in ids}
    if cluster not in named and len(named) > 1:
        raise ClusterError(f"the history is of {', '.join(named)}, and not of {cluster}")
    return {id_: cluster for id_ in ids if cluster not in named or id_ in (None, cluster)}


def history_lines(spark: SparkSession, path: str, cluster: str | None = None) -> DataFrame:
    """The lines of history files, packed or not.

    Args:
        spark: whose workers read them.
        path: of a file, a folder or a glob.
        cluster: files whose paths name another are left out; None: none are.

    Returns:
        ``cluster``, that the file's path names, null for none, and ``value``.

    Raises:
        NoHistoryError: there are no files.
    """
    options = address_of(path).options
    found = ((file, cluster_of(file)) for file in sorted(files_of(path)))
    files = [one for one in found if cluster is None or one[1] in (None, cluster)]
    if not files:
        raise NoHistoryError(f"{path}: there is no volume history; name its folder")
    cores = spark.sparkContext.defaultParallelism
    tasks = [some for some in (files[task :: 2 * cores] for task in range(2 * cores)) if some]

    def read(_: int, some: Sequence[tuple[str, str | None]]) -> Batches:
        for name, of_path in some:
            # An hour's file at a time: some megabytes.
            with open_input(name, options) as opened:
                content = (
                    pa.CompressedInputStream(opened, "gzip") if name.endswith(".gz") else opened
                )
                lines = content.read().decode(errors="replace").splitlines()
            clusters = pa.repeat(pa.scalar(of_path, pa.string()), len(lines))
            yield pa.RecordBatch.from_arrays(
                [clusters, pa.array(lines, pa.string())], ["cluster", "value"]
            )

    return by_workers(spark, tasks, read, "cluster string, value string")


def silver_volume(lines: DataFrame) -> DataFrame:
    """SILVER_VOLUME.

    Args:
        lines: of the history files: ``cluster``, ``value``.
    """
    return one_per_slot(_readings(lines))


def one_per_slot(readings: DataFrame) -> DataFrame:
    """SILVER_VOLUME, of readings that may be of the same times: of its own rows and new ones.

    Args:
        readings: with its columns but ``dt``.
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
    readings = (
        lines.where("trim(value) != ''")
        .withColumn("line", sql.from_json("value", HISTORY_LINE, options))
        .withColumn("observed_ts", sql.expr("TRY_CAST(line.time AS timestamp)"))
        .where("line._corrupt_record IS NULL AND observed_ts IS NOT NULL")
        .withColumn("cluster_id", sql.coalesce("cluster", "line.cluster_id"))
        .withColumn("dt", sql.to_date("observed_ts"))
        .selectExpr("cluster_id", "dt", "observed_ts", f"inline({_READINGS})")
    )
    return readings.where(
        "broker IS NOT NULL AND log_dir IS NOT NULL"
        " AND (offline OR total_bytes >= 0 AND available_bytes BETWEEN 0 AND total_bytes)"
    )
