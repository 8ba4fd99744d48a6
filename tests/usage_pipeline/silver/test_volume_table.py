"""The volume history as a table: one row for a volume and a time, from what sidecars write."""

import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sidecar.history import Folder
from sidecar.history.volume_line import to_line
from sidecar.volumes import Observation, OfflineLogDir, Reading, Volume
from usage_pipeline.ingest.clusters import ClusterError
from usage_pipeline.silver import volume_table
from usage_pipeline.silver.volume_table import (
    LINES,
    READINGS,
    SLOT_S,
    NoHistoryError,
    clusters_of,
    one_per_slot,
    volume_history,
)
from usage_pipeline.tables.schemas import SILVER_VOLUME, UNNAMED

pytestmark = pytest.mark.spark

EIGHT_S = 1_767_600_000.0
"""2026-01-05T08:00:00Z."""


def line(second: float, **more: object) -> str:
    """Returns a reading of broker 1's /d1."""
    observed = datetime.fromtimestamp(EIGHT_S + second, UTC).isoformat().replace("+00:00", "Z")
    volume = {"broker_id": 1, "log_dir": "/d1", "total_bytes": 100, "available_bytes": 40}
    document = {"time": observed, "origin": "a", "brokers": [1], "volumes": [volume], "offline": []}
    return json.dumps(document | more)


def rows(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    history = volume_history(spark, str(path))
    table = one_per_slot(history.readings_of(UNNAMED))
    assert list(SILVER_VOLUME.names) == table.columns
    return [row.asDict() for row in table.orderBy("broker", "log_dir", "observed_ts").collect()]


def test_what_sidecars_write_is_a_row_for_each_volume_and_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Three sidecars write at :01, :04 and :11, as the daemon does; an hour of them is packed."""
    for origin, at_s, available in (("a", 1.0, 40), ("b", 4.0, 39), ("c", 11.0, 38)):
        reading = Reading(
            1, at_s, (Volume(1, "/d1", 100, available),), (OfflineLogDir("/d2", "offline"),)
        )
        seen = Observation(at_s, "poll", None, {1: reading})
        folder = Folder(tmp_path, origin, 1 << 20)
        folder.append(to_line(seen, origin, EIGHT_S + at_s), EIGHT_S + at_s)
        if origin != "c":
            folder.tidy(EIGHT_S + 3600)
    assert 2 == len(list(tmp_path.glob("*.gz")))
    seen_at = [datetime(2026, 1, 5, 8, 0, second) for second in (4, 11)]  # noqa: DTZ001 - Spark's
    assert [
        *(
            ("/d1", at, 100, available, False)
            for at, available in zip(seen_at, (39, 38), strict=True)
        ),
        *(("/d2", at, None, None, True) for at in seen_at),
    ] == [
        (
            row["log_dir"],
            row["observed_ts"],
            row["total_bytes"],
            row["available_bytes"],
            row["offline"],
        )
        for row in rows(spark, tmp_path)
    ]
    assert {(date(2026, 1, 5), 1)} == {(row["dt"], row["broker"]) for row in rows(spark, tmp_path)}
    assert 0 == 86_400 % SLOT_S


def test_torn_strange_and_repeated_lines(spark: SparkSession, tmp_path: Path) -> None:
    """They are counted; unknown fields are ignored, and a line read twice is one row."""
    whole = line(0)
    strange = [
        line(60, later="a field of a later sidecar", offline=None),
        line(120, volumes=[{"broker_id": 1, "log_dir": "/d1", "total_bytes": 5}]),
        line(
            180,
            volumes=[{"broker_id": 1, "log_dir": "/d1", "total_bytes": 1, "available_bytes": 2}],
        ),
    ]
    torn = [
        whole[:90],
        "not JSON",
        line(240, time="yesterday"),
        line(300, volumes=[{"broker_id": 2**40}]),
    ]
    (tmp_path / "h.jsonl").write_text("\n".join([whole, whole, "", *strange, *torn]))
    assert [0, 60] == [
        row["observed_ts"].replace(tzinfo=UTC).timestamp() - EIGHT_S
        for row in rows(spark, tmp_path)
    ]
    assert {LINES: 4, READINGS: 2} == volume_history(spark, str(tmp_path)).faults
    (tmp_path / "h.jsonl").write_text("\n".join([*strange[1:], *torn]))
    with pytest.raises(NoHistoryError, match=f"only 4 {LINES}, 2 {READINGS}"):
        volume_history(spark, str(tmp_path))


def test_files_that_a_sidecar_packs_or_that_are_cut(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be read is read, a cut file is named, and one packed since the listing is found."""
    text = "".join(f"{line(60 * minute)}\n" for minute in range(50)).encode()
    packed = gzip.compress(text)
    (tmp_path / "a.jsonl.gz").write_bytes(packed)
    (tmp_path / "b.jsonl.gz.tmp").write_bytes(packed[:100])
    listed = {str(tmp_path / name): None for name in ("a.jsonl", "b.jsonl.gz.tmp", "gone.jsonl")}
    with monkeypatch.context() as patch:
        patch.setattr(volume_table, "files_of", lambda _: listed)
        assert 50 == len(rows(spark, tmp_path))
        assert {} == volume_history(spark, str(tmp_path)).faults
    (tmp_path / "a.jsonl.gz").write_bytes(packed[:-20])
    found = volume_history(spark, str(tmp_path))
    assert 40 < found.readings_of(UNNAMED).count() <= 50
    assert 1 == found.faults[f"damaged file {tmp_path}/a.jsonl.gz (the gzip file ends early)"]


@pytest.mark.parametrize(
    ("ids", "cluster", "expected"),
    [
        ({None}, None, {None: "default"}),
        ({"a", None}, None, {"a": "a", None: "a"}),
        ({"a", "b", None}, None, {"a": "a", "b": "b", None: "default"}),
        ({"a", None}, "eu", {"a": "eu", None: "eu"}),
        ({"a", "b", None}, "a", {"a": "a", None: "a"}),
        (set(), "eu", {}),
    ],
)
def test_whose_lines_are(
    ids: set[str | None], cluster: str | None, expected: dict[str | None, str]
) -> None:
    """Lines without a cluster belong to the only named one; a caller's name renames one cluster."""
    assert expected == clusters_of(ids, cluster)


def test_lines_of_several_are_not_renamed() -> None:
    """Volumes of different clusters' brokers would be mixed."""
    with pytest.raises(ClusterError, match="the history is of the clusters a, b, not of eu"):
        clusters_of({"a", "b"}, "eu")


def test_a_history_of_several_clusters(spark: SparkSession, tmp_path: Path) -> None:
    """A path's name overrides Kafka's id. With a name, other clusters' files are left out."""
    files = {
        "cluster_id=eu/volumes-a-1.jsonl": line(1.0, cluster_id="MkU3"),
        "cluster_id=us/volumes-a-1.jsonl": line(86_401.0),
        "volumes-a-1.jsonl": line(3.0, cluster_id="asia"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    history = volume_history(spark, str(tmp_path))
    days = {"eu": {date(2026, 1, 5)}, "us": {date(2026, 1, 6)}, "asia": {date(2026, 1, 5)}}
    assert days == history.days
    assert dict.fromkeys(days, 1) == {each: history.readings_of(each).count() for each in days}
    history.readings.unpersist()
    of_us = volume_history(spark, f"{tmp_path}/cluster_id=*/*", "us")
    assert {"us": {date(2026, 1, 6)}} == of_us.days
    assert 1 == of_us.readings_of("us").count()
    of_us.readings.unpersist()
