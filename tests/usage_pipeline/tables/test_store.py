"""The tables of a folder as a run sees them."""

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.usage_pipeline.build import NOW, frame_of
from usage_pipeline.tables import delta
from usage_pipeline.tables.commits import recovered
from usage_pipeline.tables.delta import BesideError
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import DIM_TOPIC, SILVER_VOLUME
from usage_pipeline.tables.store import FewerRowsError, Store, commit_all


def volumes(spark: SparkSession, *days: int, available: int = 1) -> DataFrame:
    """Returns a reading of each of some days of November."""
    return frame_of(
        spark,
        SILVER_VOLUME,
        *(
            {"dt": date(2026, 11, day), "broker": 1, "available_bytes": available, "offline": False}
            for day in days
        ),
    )


def days_and_bytes(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row["dt"].day, row["available_bytes"]) for row in frame.collect())


@pytest.mark.spark
def test_a_run_reads_its_own_days_and_the_last_good_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It does so before it commits and after; a killed run's days are never read, nor retained."""
    folder = Folder.parse(str(tmp_path / "tables"))

    def store() -> Store:
        return Store(spark, recovered(folder)[0])

    first = store()
    assert [] == days_and_bytes(first.read(SILVER_VOLUME))
    assert not first.has(SILVER_VOLUME)
    first.write(SILVER_VOLUME, volumes(spark, 19, 20, 20))
    first.write(DIM_TOPIC, frame_of(spark, DIM_TOPIC, {"topic": "a"}))
    assert first.has(SILVER_VOLUME)
    commit_all([first], "first", NOW)

    killed = store()
    killed.write(SILVER_VOLUME, volumes(spark, 20, 20, available=2))
    killed.write(DIM_TOPIC, frame_of(spark, DIM_TOPIC, {"topic": "b"}))
    assert [(19, 1), (20, 2), (20, 2)] == days_and_bytes(killed.read(SILVER_VOLUME))
    assert [(20, 2), (20, 2)] == days_and_bytes(killed.read(SILVER_VOLUME, [date(2026, 11, 20)]))
    assert "b" == killed.read(DIM_TOPIC).collect()[0]["topic"]

    again = store()
    assert [(19, 1), (20, 1), (20, 1)] == days_and_bytes(again.read(SILVER_VOLUME))
    assert "a" == again.read(DIM_TOPIC).collect()[0]["topic"]
    again.write(SILVER_VOLUME, volumes(spark, 20, available=3))
    with pytest.raises(FewerRowsError, match="2026-11-20 has 2 rows and would have 1"):
        again.refuse_fewer(SILVER_VOLUME)
    assert [(19, 1), (20, 3)] == days_and_bytes(again.read(SILVER_VOLUME))
    assert (1, (date(2026, 11, 20),)) == (again.rows(SILVER_VOLUME), again.written_days())
    commit_all([again], "again", NOW)
    assert [(19, 1), (20, 3)] == days_and_bytes(store().read(SILVER_VOLUME))
    assert (date(2026, 11, 19), date(2026, 11, 20)) == store().days_of(SILVER_VOLUME)


@pytest.mark.spark
def test_a_table_may_be_made_of_itself(spark: SparkSession, tmp_path: Path) -> None:
    """What is written again takes the place of what the same run has written before."""
    folder = Folder.parse(str(tmp_path))
    store = Store(spark, recovered(folder)[0])
    store.write(SILVER_VOLUME, volumes(spark, 20))
    store.write(SILVER_VOLUME, store.read(SILVER_VOLUME).unionByName(volumes(spark, 21)))
    assert [(20, 1), (21, 1)] == days_and_bytes(store.read(SILVER_VOLUME))
    store.discard()
    assert [] == list((tmp_path / SILVER_VOLUME.name).rglob("*.parquet"))


@pytest.mark.spark
def test_what_a_record_names_is_never_removed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends with an error once it is decided; the next one needs its files."""
    folder = Folder.parse(str(tmp_path))
    store = Store(spark, recovered(folder)[0])
    store.write(SILVER_VOLUME, volumes(spark, 20))

    def beaten(*_: object) -> None:
        raise BesideError("somebody else")

    with monkeypatch.context() as patch:
        patch.setattr(delta, "commit_to", beaten)
        with pytest.raises(BesideError):
            commit_all([store], "run", NOW)
    store.discard()
    assert [(20, 1)] == days_and_bytes(Store(spark, recovered(folder)[0]).read(SILVER_VOLUME))
