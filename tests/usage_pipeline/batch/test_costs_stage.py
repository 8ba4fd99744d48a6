"""The stage of costs: the days of its bill, and what another run of it replaces."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sidecar.formats.owners import NOBODY, USER, Owners, Rule
from tests.usage_pipeline.build import NOW, committed, rows_in
from usage_pipeline.batch.job import Outcome, run
from usage_pipeline.batch.run import Inputs, InputsError, Options
from usage_pipeline.batch.stages import Stage
from usage_pipeline.costs.cost_table import Billing
from usage_pipeline.costs.log_dirs import Snapshot
from usage_pipeline.costs.rates import Kind, Rates
from usage_pipeline.tables.commits import Change, begin, commit, recovered
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import GOLD_COST, GOLD_USAGE_1S

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

OWNERS = Owners((Rule(USER, "alice", is_prefix=False, owner="shop"),))


def used(out: Path, *days: int) -> None:
    rows = [
        {
            "dt": date(2026, 11, day),
            "broker": 1,
            "user": user,
            "client_id": "",
            "quota_type": "produce",
            "window_start": datetime(2026, 11, day, 10, tzinfo=UTC),
            "amount": 1e9,
            "lower_bound": False,
        }
        for day in days
        for user in ("alice", "bob")
    ]
    committed(out, GOLD_USAGE_1S, *rows)


def charged(
    spark: SparkSession,
    out: Path,
    bills: dict[str, Decimal],
    kind: Kind = Kind.PRODUCED,
    now: datetime = NOW,
    *,
    snapshots: dict[date, Snapshot] | None = None,
    **options: datetime | timedelta | None,
) -> Outcome:
    billing = Billing(
        Rates("EUR", {kind: Decimal("0.10")}, bills),
        OWNERS,
        snapshots or {date(2026, 12, 9): Snapshot({}, True)},
    )
    asked = Options(now, billing=billing, **options)  # type: ignore[arg-type]  # times alone
    return run(spark, str(out), Inputs(), asked, stages=[Stage.COSTS])


def costs(out: Path) -> dict[tuple[str, str, str], str]:
    return {
        (row["dt"], row["owner"], row["kind"]): str(row["cost"]) for row in rows_in(out, GOLD_COST)
    }


def test_a_bill_covers_the_days_without_usage(spark: SparkSession, tmp_path: Path) -> None:
    """November has 22 days so far, and a bill for each of 30."""
    used(tmp_path, 19, 21)
    since, until = datetime(2026, 11, 19, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)
    bills = {"2026-11": Decimal("300.03")}
    outcome = charged(spark, tmp_path, bills, since=since, until=until)
    half = {NOBODY: "5.00", "shop": "5.00"}
    expected = {
        **{
            (f"2026-11-{day}", owner, "produced"): cost
            for owner, cost in half.items()
            for day in (19, 21)
        },
        **{(f"2026-11-{day}", NOBODY, "unseen"): "10.00" for day in (20, 22)},
    }
    assert expected == {key: cost for key, cost in costs(tmp_path).items() if key[1]}
    assert {"gold_cost": 8} == outcome.rows
    outcome = charged(spark, tmp_path, bills, since=since, until=datetime(2026, 11, 20, tzinfo=UTC))
    assert (date(2026, 11, 19),) == outcome.days


def test_without_a_range_a_month_adds_up_to_its_bill(spark: SparkSession, tmp_path: Path) -> None:
    """Days without usage belong to nobody, also those before the first usage and after the last.

    Days to come are not billed yet, although there is a snapshot of one.
    """
    used(tmp_path, 3, 5)
    bills = {"2026-11": Decimal("300.03")}
    later = datetime(2026, 12, 2, tzinfo=UTC)
    for until in (datetime(2026, 12, 1, tzinfo=UTC), None):
        outcome = charged(spark, tmp_path, bills, now=later, until=until)
        assert (date(2026, 11, 1), date(2026, 11, 30)) == (outcome.days[0], outcome.days[-1])
        assert bills["2026-11"] == sum(cost.cost for cost in outcome.costs if cost.cost is not None)
    outcome = charged(spark, tmp_path, bills, since=datetime(2026, 11, 2, tzinfo=UTC))
    assert (date(2026, 11, 2), NOW.date()) == (outcome.days[0], outcome.days[-1])


@pytest.mark.parametrize("bills", [{"2026-11": Decimal("300.00")}, {}])
def test_days_whose_usage_is_no_longer_kept_are_not_charged_again(
    spark: SparkSession, tmp_path: Path, bills: dict[str, Decimal]
) -> None:
    """Their costs stay as they were, although there is a snapshot of them, unless asked for."""
    used(tmp_path, 2, 20)
    snapshots = {date(2026, 11, day): Snapshot({}, True) for day in (1, 2)}
    charged(spark, tmp_path, bills, snapshots=snapshots)
    before = costs(tmp_path)
    since, keep = datetime(2026, 11, 20, tzinfo=UTC), timedelta(days=1)
    outcome = charged(spark, tmp_path, bills, snapshots=snapshots, since=since, keep=keep)
    assert {GOLD_USAGE_1S.name: 1} == outcome.dropped
    outcome = charged(spark, tmp_path, bills, snapshots=snapshots)
    assert date(2026, 11, 2) not in outcome.days
    assert before == costs(tmp_path)
    folder, _ = recovered(Folder.parse(str(tmp_path)))
    begin(folder)
    commit(folder, [Change(GOLD_USAGE_1S.name, [], ["2026-11-20"])], "a test", NOW)
    charged(spark, tmp_path, bills, snapshots=snapshots)
    assert before == costs(tmp_path)


def test_prices_make_the_bill_of_the_days_with_usage(spark: SparkSession, tmp_path: Path) -> None:
    """A later run replaces the days, also if no usage of them has a price."""
    used(tmp_path, 19, 21)
    until = datetime(2026, 12, 1, tzinfo=UTC)
    charged(spark, tmp_path, {}, until=until)
    keys = [(f"2026-11-{day}", owner) for day in (19, 21) for owner in (NOBODY, "shop")]
    assert {(*key, "produced"): "0.10" for key in keys} == costs(tmp_path)
    charged(spark, tmp_path, {}, Kind.FETCHED, until=until)
    assert {} == costs(tmp_path)


def test_days_that_are_not_there_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """The message says what makes them."""
    used(tmp_path, 19)
    with pytest.raises(InputsError, match="no usage of the requested days: make it with"):
        charged(spark, tmp_path, {}, until=datetime(2026, 11, 1, tzinfo=UTC))
