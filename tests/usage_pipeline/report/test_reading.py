"""The tables' files as rows for the page."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from tests.usage_pipeline.build import committed, used
from usage_pipeline.report import ReportError, reading, report
from usage_pipeline.report.reading import read_tables
from usage_pipeline.report.usage import others_in, tenant
from usage_pipeline.tables.commits import Pinned, pinned
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import (
    GOLD_RECOMMENDATION,
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_VOLUME,
)

START = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)
TODAY = date(2026, 1, 15)


def tables_in(out: Path) -> Pinned:
    return pinned(Folder.parse(str(out)))


def write_usage(out: Path, seconds: int) -> None:
    """Writes a row a second."""
    moments = [START + timedelta(seconds=second) for second in range(seconds)]
    rows = [
        used(
            moment,
            broker=0,
            client_id="",
            amount=1.5,
            events=2,
            throttled=1,
            throttle_ms=10,
            lower_bound=moment == START,
        )
        for moment in moments
    ]
    committed(out, GOLD_USAGE_1S, *rows)


def test_usage_is_summed_up(tmp_path: Path) -> None:
    """An hour over midnight is read as windows of 10 s; sums stay, one lower bound is enough."""
    write_usage(tmp_path, 3600)
    rows = sorted(
        read_tables(tables_in(tmp_path), TODAY)["gold_usage_1s"],
        key=lambda row: str(row["window_start"]),
    )
    assert 360 == len(rows)
    expected = {
        "broker": 0,
        "user": "alice",
        "client_id": "",
        "quota_type": "produce",
        "window_start": START,
        "amount": 15.0,
        "events": 20,
        "throttled": 10,
        "throttle_ms": 100,
        "lower_bound": True,
    }
    assert expected == rows[0]
    assert [False] * 359 == [row["lower_bound"] for row in rows[1:]]


def test_a_table_has_its_days(tmp_path: Path) -> None:
    """Days are in the folders' names, not in the files; days before the last week are left out."""
    day = date(2026, 1, 15)
    rows = [{"dt": day - timedelta(days=ago), "entity": str(ago)} for ago in (0, 6, 7)]
    committed(tmp_path, GOLD_RECOMMENDATION, *rows)
    found = read_tables(tables_in(tmp_path), TODAY)["gold_recommendation"]
    assert [(day - timedelta(days=6), "6"), (day, "0")] == sorted(
        (row["dt"], row["entity"]) for row in found
    )
    assert {None} == {row["quota"] for row in found}


def test_a_clock_that_is_ahead_hides_no_day(tmp_path: Path) -> None:
    """Days after today are left out, except if there are no others."""
    for day in (START.date(), date(2026, 5, 1)):
        committed(tmp_path, GOLD_RECOMMENDATION, {"dt": day, "entity": "alice"})
    for today, expected in ((date(2026, 1, 8), START.date()), (date(2026, 1, 1), date(2026, 5, 1))):
        found = read_tables(tables_in(tmp_path), today)["gold_recommendation"]
        assert [expected] == [row["dt"] for row in found]


def test_what_was_replaced_is_not_read(tmp_path: Path) -> None:
    """Replaced files stay for pinned readers, and are not read. Nor are another cluster's files."""
    day = date(2026, 1, 5)
    for run in ("first", "second"):
        committed(tmp_path, GOLD_RECOMMENDATION, {"dt": day, "entity": run}, run=run)
    committed(tmp_path, GOLD_RECOMMENDATION, {"dt": day, "entity": "us"}, cluster="us")
    for cluster, expected in (("default", "second"), ("us", "us"), ("eu", None)):
        found = read_tables(tables_in(tmp_path), TODAY, cluster)["gold_recommendation"]
        assert ([] if expected is None else [expected]) == [row["entity"] for row in found]


def test_of_very_many_tenants_the_rest_are_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tenants that use or wait most have names, and the sums include all tenants."""
    monkeypatch.setattr(reading, "MOST_TENANTS", 2)
    monkeypatch.setattr(reading, "_WAITING", 1)
    monkeypatch.setattr(reading, "_BATCH", 3)
    users = {"ann": (9.0, 0), "bob": (8.0, 1), "cat": (1.0, 70), "dan": (1.0, 2), "eve": (2.0, 0)}
    rows = [
        used(
            START + timedelta(seconds=second),
            client_id="",
            quota_type=quota_type,
            user=user,
            amount=amount,
            throttle_ms=wait,
        )
        for quota_type, names in (("produce", "ann bob cat dan eve"), ("fetch", "ann"))
        for user in names.split()
        for amount, wait in [users[user]]
        for second in (0, 1)
    ]
    committed(tmp_path, GOLD_USAGE_1S, *rows)
    found = read_tables(tables_in(tmp_path), TODAY)["gold_usage_1s"]
    sums = {(tenant(row), row["quota_type"]): row["amount"] for row in found if row["events"]}
    assert {
        ("ann", "produce"),
        ("bob", "produce"),
        ("cat", "produce"),
        ("2 others", "produce"),
    } == {key for key in sums if key[1] == "produce"}
    together = [row for row in found if others_in(row)]
    assert 6.0 == sum(float(str(row["amount"])) for row in together)
    assert [("ann", "fetch")] == [key for key in sums if key[1] == "fetch"]
    page = report({"gold_usage_1s": found}, START)
    assert "<dt>Tenants</dt><dd>5</dd>" in page
    assert "2 others" in page


@pytest.mark.slow
def test_the_page_says_how_many_tenants_have_no_name(tmp_path: Path) -> None:
    """600 of 700 tenants have a name and a row: 500 that use most, and 100 that wait most."""
    tenants = [("produce", f"p{at}", at) for at in range(700)] + [("fetch", "f", 1)]
    rows = [
        used(
            START,
            quota_type=quota_type,
            user=user,
            client_id="",
            amount=1000.0 - at,
            throttle_ms=at,
        )
        for quota_type, user, at in tenants
    ]
    committed(tmp_path, GOLD_USAGE_1S, *rows)
    page = report(read_tables(tables_in(tmp_path), TODAY), START)
    note = page.partition('<div id="left-out">')[2].partition("</div>")[0]
    assert (
        "<li>Usage: 601 of 701 tenants, those that use or wait most; all are in gold_usage_1s.</li>"
    ) in note
    assert "<code>throttle-sidecar pipeline files TABLE --out DIR</code>" in note
    assert "<dt>Tenants</dt><dd>700</dd>" in page
    assert 601 + 1 == page.partition("<tbody>")[2].count('<tr><td data-v="')
    assert ["f"] == [name for name in ("f", "p550") if f'<td data-v="{name}">' in page]


def test_of_a_replay_the_busiest_and_the_longest_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All candidates of a tenant, and quotas in force; the page says how many others there are.

    What has no quota is no other, nor what burst spreading would have done, which no page shows.
    """
    monkeypatch.setattr(reading, "_REPLAYED", 1)
    monkeypatch.setattr(reading, "_IN_FORCE", 2)
    monkeypatch.setattr(reading, "_BATCH", 2)
    rows = [
        {
            "dt": START.date(),
            "broker": broker,
            "quota_type": "produce",
            "shared_by": name,
            "scenario": scenario,
            "quota": 1.0,
            "algorithm": "rate",
            "events": events,
            "throttle_ms_total": waits,
        }
        for name, scenario, events, waits in (
            ("a", "=1", 5, 0),
            ("a", "=2", 5, 0),
            ("b", "=1", 9, 0),
            ("a", "in force", 5, 7),
            ("b", "in force", 9, 8),
            ("b", "x2", 90, 900),
        )
        for broker in (0, 1)
    ]
    nothing = {
        **rows[-3],
        "shared_by": "c",
        "scenario": "in force",
        "quota": None,
        "throttle_ms_total": 10**6,
    }
    spread = [{**row, "algorithm": "burst-spreading", "throttle_ms_total": 10**6} for row in rows]
    committed(tmp_path, GOLD_REPLAY, *rows, *spread, nothing)
    found = read_tables(tables_in(tmp_path), TODAY)["gold_replay"]
    assert [
        ("a", "=1"),
        ("a", "=1"),
        ("a", "=2"),
        ("a", "=2"),
        ("b", "in force"),
        ("b", "in force"),
    ] == sorted((str(row["shared_by"]), str(row["scenario"])) for row in found if row["shared_by"])
    page = report({"gold_replay": found}, START)
    assert "<li>Plots of what quotas would do: 1 of 2 tenants, the busiest;" in page
    assert "<li>Configured quotas, replayed: 2 of 4 rows, those with the longest waits;" in page


def test_of_a_volume_the_ends_of_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The teeth of each volume remain; readings of offline volumes are left out."""
    monkeypatch.setattr(reading, "_BATCH", 4)
    rows = [
        {
            "dt": START.date(),
            "broker": broker,
            "log_dir": "/d",
            "total_bytes": 100,
            "observed_ts": START + timedelta(seconds=10 * at),
            "available_bytes": available,
        }
        for broker in (1, 2)
        for at, available in enumerate((50, 20, None, 70, 40, 60))
    ]
    committed(tmp_path, SILVER_VOLUME, *rows)
    found = read_tables(tables_in(tmp_path), TODAY)["silver_volume"]
    assert [(1, 20), (1, 70), (2, 20), (2, 70)] == sorted(
        (row["broker"], row["available_bytes"]) for row in found
    )


def test_lines_that_cant_be_read_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be millions of lines of a kind, which are read in batches."""
    monkeypatch.setattr(reading, "_BATCH", 2)
    line = {"src_file": "broker-1.log", "kind": "torn", "reason": "it is torn off"}
    committed(tmp_path, QUARANTINE, *[line] * 5, {**line, "kind": "long"})
    assert {("torn", 5), ("long", 1)} == {
        (row["kind"], row["lines"]) for row in read_tables(tables_in(tmp_path), TODAY)["quarantine"]
    }


def test_no_tables_are_refused(tmp_path: Path) -> None:
    """The message has the command that makes tables; an empty table is accepted."""
    with pytest.raises(ReportError, match="pipeline run"):
        read_tables(tables_in(tmp_path), TODAY)
    committed(tmp_path, QUARANTINE)
    assert {"quarantine": []} == read_tables(tables_in(tmp_path), TODAY)


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    """There is no traceback."""
    committed(tmp_path, GOLD_REPLAY, {"dt": date(2026, 1, 5)})
    for file in (tmp_path / "gold_replay").rglob("*.parquet"):
        file.write_bytes(b"no Parquet at all")
    with pytest.raises(ReportError, match="can't be read"):
        read_tables(tables_in(tmp_path), TODAY)
