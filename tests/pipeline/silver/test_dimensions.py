"""The few clients, files and principals that many requests are of."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sidecar.pipeline.ingest.records import ROWS
from sidecar.pipeline.silver import dimensions as known
from sidecar.pipeline.silver.dimensions import COUNTED, Dimensions, counted


def requests(*charged: tuple[str, bool | None, str]) -> pa.RecordBatch:
    usual = {"client_id": "", "src_file": "a.log"}
    rows: list[dict[str, Any]] = [
        {**usual, "user": user, "is_follower": is_follower, "api": api}
        for user, is_follower, api in charged
    ]
    return pa.RecordBatch.from_pylist(rows, ROWS)


def test_brokers_are_known_by_what_they_ask() -> None:
    """Followers' fetches and heartbeats are theirs; a tenant's are not."""
    batch = requests(
        ("alice", False, "PRODUCE"),
        ("kafka", True, "FETCH"),
        ("alice", False, "FETCH"),
        ("kafka", True, "FETCH"),
        ("kafka", False, "PRODUCE"),
        ("controller", None, "BROKER_HEARTBEAT"),
    )
    found = pa.Table.from_batches(counted(iter([batch, batch]))).to_pylist()
    assert {
        ("alice", None): (4, 0),
        ("kafka", None): (6, 4),
        ("controller", None): (2, 2),
        (None, "a.log"): (0, 0),
    } == {(row["user"], row["src_file"]): (row["rows"], row["brokers"]) for row in found}
    assert 4 == len(found)


def test_of_many_clients_each_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In two files, also where there is no room for all batches."""
    monkeypatch.setattr(known, "_MOST_UNSUMMED", 3)
    columns = {"api": "FETCH", "is_follower": False}
    batches = [
        pa.RecordBatch.from_pylist(
            [
                {**columns, "user": f"u{n}", "client_id": "", "src_file": f"{number}.log"}
                for n in range(4)
            ],
            ROWS,
        )
        for number in (1, 0, 1)
    ]
    found = Dimensions.of_rows(pa.Table.from_batches(counted(iter(batches))).to_pylist())
    assert [(f"u{n}", "") for n in range(4)] == found.clients
    assert (["0.log", "1.log"], 12) == (found.files, found.rows)


def test_what_is_known_of_all() -> None:
    """Clients and files are in the order of their names; brokers' principals are apart."""
    nobody = {"user": None, "client_id": None, "rows": 0, "brokers": 0}
    found = Dimensions.of_rows(
        [
            {**nobody, "src_file": "b.log"},
            {"user": "kafka", "client_id": "", "src_file": None, "rows": 5, "brokers": 1},
            {"user": "alice", "client_id": "etl", "src_file": None, "rows": 5, "brokers": 0},
            {**nobody, "src_file": "a.log"},
        ]
    )
    assert [("alice", "etl"), ("kafka", "")] == found.clients
    assert ["a.log", "b.log"] == found.files
    assert (10, frozenset({"kafka"})) == (found.rows, found.cluster_users)


@pytest.mark.spark
def test_what_tasks_have_counted_is_added_up(spark: SparkSession) -> None:
    """It does not matter where a client's rows are."""
    rows = [("alice", "etl", f"{n % 3}.log", "FETCH", n % 2 == 1) for n in range(10)]
    frame = spark.createDataFrame(
        rows, "user string, client_id string, src_file string, api string, is_follower boolean"
    ).repartition(4)
    found = Dimensions.of(frame.mapInArrow(counted, COUNTED))
    assert ([("alice", "etl")], ["0.log", "1.log", "2.log"]) == (found.clients, found.files)
    assert (10, frozenset({"alice"})) == (found.rows, found.cluster_users)
