"""Several clusters in one run: whose rows are whose, and what is refused."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sidecar.formats.owners import Owners
from tests.usage_pipeline.build import rows_in
from tests.usage_pipeline.small_logs import history, log, metadata
from usage_pipeline.batch.job import Outcome, run
from usage_pipeline.batch.run import Inputs, InputsError, Options, Snapshot
from usage_pipeline.batch.stages import OF_A_RUN, Stage
from usage_pipeline.costs.cost_table import Billing
from usage_pipeline.costs.rates import Rates
from usage_pipeline.ingest.clusters import ClusterError
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.tables.schemas import (
    GOLD_DISK_FORECAST,
    GOLD_RECOMMENDATION,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_REQUEST,
    SILVER_VOLUME,
    UNNAMED,
    Table,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = datetime(2026, 11, 22, tzinfo=UTC)
HOUR = "2026-11-20T10"
OF_LOGS = (Stage.SILVER, Stage.USAGE, Stage.REPLAY, Stage.RECOMMEND)


def made(
    spark: SparkSession,
    out: Path,
    inputs: Inputs,
    *stages: Stage,
    cluster: str | None = None,
    **options: object,
) -> Outcome:
    chosen = Options(NOW, cluster, candidates=0, **options)  # type: ignore[arg-type]  # as set
    return run(spark, str(out), inputs, chosen, stages=stages)


def counts(out: Path, table: Table) -> dict[str, int]:
    """Returns how many rows each cluster has."""
    clusters = [row["cluster_id"] for row in rows_in(out, table)]
    return {cluster: clusters.count(cluster) for cluster in set(clusters)}


@pytest.mark.rare
def test_brokers_of_one_id_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Each table has both clusters' rows, and a run of one does not change the other's."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    second = (metadata(f"2026-11-20 10:00:0{second},100") for second in range(3))
    log(logs / "cluster_id=eu", 1, metadata("2026-11-20 10:00:00,100"), "torn\n")
    log(logs / "cluster_id=us", 1, *second, "torn\n", "torn too\n")
    first = made(spark, out, Inputs(RequestLogs(str(logs))), *OF_LOGS)
    assert (("eu", "us"), 2, 4, 3) == (
        first.clusters,
        first.files,
        first.rows["silver_request"],
        first.quarantined,
    )
    assert {"eu": 1, "us": 3} == counts(out, SILVER_REQUEST) == counts(out, GOLD_USAGE_1S)
    assert {"eu": 1, "us": 2} == counts(out, QUARANTINE)
    assert {"eu": 1, "us": 1} == counts(out, GOLD_RECOMMENDATION)

    log(logs / "cluster_id=eu", 1, *(metadata(f"2026-11-20 11:00:0{n},100") for n in range(5)))
    again = made(spark, out, Inputs(RequestLogs(str(logs))), *OF_LOGS, cluster="eu")
    assert (("eu",), 1) == (again.clusters, again.files)
    assert {"eu": 5, "us": 3} == counts(out, SILVER_REQUEST) == counts(out, GOLD_USAGE_1S)
    assert {"us": 2} == counts(out, QUARANTINE)
    # From the tables alone, too.
    made(spark, out, Inputs(), Stage.USAGE, cluster="us")
    assert {"eu": 5, "us": 3} == counts(out, GOLD_USAGE_1S)


@pytest.mark.rare
def test_a_cluster_may_lack_what_others_have(spark: SparkSession, tmp_path: Path) -> None:
    """A cluster without volumes, logs or requests of the requested time stops no other."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs / "cluster_id=eu", 1, metadata("2026-11-20 10:00:00,100"))
    log(logs / "cluster_id=old", 1, metadata("2026-11-02 10:00:00,100"), "torn\n")
    volumes = history(tmp_path / "history", HOUR, cluster="eu")
    history(tmp_path / "history", HOUR, cluster="us", available=5)
    inputs = Inputs(RequestLogs(str(logs)), volumes)
    since = datetime(2026, 11, 20, tzinfo=UTC)
    found = made(spark, out, inputs, *OF_A_RUN, since=since)
    assert ("eu", "us") == found.clusters
    assert ["old"] == list(found.left_out)
    assert "2026-11-02T10:00:00Z, and none" in found.left_out["old"]
    assert {"eu": 1} == counts(out, SILVER_REQUEST)
    assert {"eu": 1, "us": 1} == counts(out, SILVER_VOLUME) == counts(out, GOLD_DISK_FORECAST)
    assert {} == counts(out, QUARANTINE)
    assert [] == [path for path in out.rglob("*") if "=old" in str(path) and path.is_file()]
    with pytest.raises(InputsError, match="and none of the"):
        made(spark, out, Inputs(inputs.request_logs), *OF_LOGS, cluster="old", since=since)


@pytest.mark.slow
def test_what_nothing_names_is_of_the_historys_cluster(spark: SparkSession, tmp_path: Path) -> None:
    """Lines of a sidecar before its update belong to the cluster that other lines name."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    log(logs, 1, metadata("2026-11-20 10:00:00,100"))
    volumes = history(tmp_path / "history", HOUR, cluster="MkU3")
    (tmp_path / "history" / "volumes-old-20261119T10.jsonl").write_text(
        Path(volumes, "volumes-MkU3-20261120T10.jsonl")
        .read_text()
        .replace("2026-11-20", "2026-11-19")
        .replace('"cluster_id"', '"unknown"')
    )
    inputs = Inputs(RequestLogs(str(logs)), volumes)
    assert ("MkU3",) == made(spark, out, inputs, Stage.SILVER).clusters
    assert {"MkU3": 1} == counts(out, SILVER_REQUEST)
    assert {"MkU3": 2} == counts(out, SILVER_VOLUME)
    # Without the history nobody would know.
    with pytest.raises(ClusterError, match="to MkU3 and to a cluster without a name"):
        made(spark, out, Inputs(RequestLogs(str(logs))), Stage.SILVER)
    assert {"MkU3": 1} == counts(out, SILVER_REQUEST)
    named = tmp_path / "named"
    assert ("eu",) == made(spark, named, inputs, Stage.SILVER, cluster="eu").clusters
    assert ({"eu": 1}, {"eu": 2}) == (counts(named, SILVER_REQUEST), counts(named, SILVER_VOLUME))


def test_a_history_with_a_name_joins_tables_without_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """They were made of readings from elsewhere; the message has the option that works."""
    out = tmp_path / "tables"
    made(spark, out, Inputs(None, history(tmp_path / "imported", HOUR)), Stage.SILVER)
    own = Inputs(None, history(tmp_path / "own", HOUR, cluster="MkU3", available=5))
    for cluster in (None, "MkU3", "eu"):
        with pytest.raises(ClusterError, match="set --cluster-id default in every run"):
            made(spark, out, own, Stage.SILVER, cluster=cluster)
    assert ("default",) == made(spark, out, own, Stage.SILVER, cluster="default").clusters
    assert {"default": 1} == counts(out, SILVER_VOLUME)


def test_what_is_of_one_cluster_is_refused_for_two(spark: SparkSession, tmp_path: Path) -> None:
    """Quotas, a plan and a bill are refused, and nothing is written."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    for cluster in ("eu", "us"):
        log(logs / f"cluster_id={cluster}", 1, metadata("2026-11-20 10:00:00,100"))
    asked = RequestLogs(str(logs))
    with pytest.raises(InputsError, match=r"--quotas applies to one cluster, .* eu, us"):
        made(spark, out, Inputs(asked, None, Snapshot({}, NOW)), Stage.SILVER)
    with pytest.raises(InputsError, match="--plan applies to one cluster"):
        made(spark, out, Inputs(asked), Stage.SILVER, has_plan=True)
    billing = Billing(Rates("EUR", {}, {}), Owners(()), {})
    with pytest.raises(InputsError, match="--rates applies to one cluster"):
        made(spark, out, Inputs(asked), Stage.SILVER, billing=billing)
    assert not (out / "silver_request").exists()


def test_days_are_each_clusters_own(spark: SparkSession, tmp_path: Path) -> None:
    """A day that one cluster has is not replaced by another's run of it."""
    logs, out = tmp_path / "logs", tmp_path / "tables"
    for cluster, day in (("eu", 20), ("us", 21)):
        log(logs / f"cluster_id={cluster}", 1, metadata(f"2026-11-{day} 10:00:00,100"))
    made(spark, out, Inputs(RequestLogs(str(logs))), Stage.SILVER)
    log(logs / "cluster_id=eu", 1, metadata("2026-11-21 10:00:00,100"))
    made(spark, out, Inputs(RequestLogs(str(logs))), Stage.SILVER)
    assert [("eu", "2026-11-20"), ("eu", "2026-11-21"), ("us", "2026-11-21")] == (
        sorted((row["cluster_id"], str(row["dt"])) for row in rows_in(out, SILVER_REQUEST))
    )
    assert UNNAMED not in counts(out, SILVER_REQUEST)
