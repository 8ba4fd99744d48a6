"""The summary says what a run has done."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest

from usage_pipeline.batch.job import Outcome
from usage_pipeline.cli.summary import (
    document,
    left_out_of_plan,
    plan_line,
    scenarios_of_nobody,
    text,
)
from usage_pipeline.costs.allocation import Cost
from usage_pipeline.ingest.paths import BrokerName
from usage_pipeline.recommend.terms import UNCLEAR_NAME
from usage_pipeline.replay.scenarios import scenario

REPLAYED = frozenset(
    {
        ("produce", "user=alice"),
        ("produce", "user=alicia"),
        ("produce", "user=<default>"),
        ("produce", "user=bob,client-id=etl"),
        ("fetch", "user=carol"),
    }
)


def outcome(
    rows: Mapping[str, int],
    *,
    clusters: tuple[str, ...] = ("default",),
    brokers: Mapping[BrokerName, int] | None = None,
    files: int = 0,
    quarantined: int = 0,
    unknown: int = 0,
    dropped: int = 0,
) -> Outcome:
    return Outcome(
        clusters=clusters,
        left_out={},
        days=(),
        rows=rows,
        files=files,
        bytes=300_000,
        brokers=brokers or {},
        quarantined=quarantined,
        volume_faults={},
        unknown=unknown,
        entities={},
        dropped={"silver_request": dropped} if dropped else {},
        recommended=(),
        costs=(),
        replayed=frozenset(),
        rolled_forward=False,
    )


def test_one_is_not_reported_as_many() -> None:
    """Many are not reported as one; none is reported as many."""
    one = outcome({"dim_topic": 1}, files=1, quarantined=1, unknown=1, dropped=1)
    assert [
        "1 request log, 0.3 MB",
        "dim_topic: 1 row",
        "silver_request: dropped 1 old day",
        "1 line was not read: see the table quarantine",
        "1 request of unknown size (no line has the bytes or partitions)",
    ] == text(one).splitlines()
    many = outcome(
        {"dim_topic": 2_000, "quarantine": 0}, files=2, quarantined=2, unknown=2, dropped=2
    )
    assert [
        "2 request logs, 0.3 MB",
        "dim_topic: 2,000 rows",
        "quarantine: 0 rows",
        "silver_request: dropped 2 old days",
        "2 lines were not read: see the table quarantine",
        "2 requests of unknown size (no line has the bytes or partitions)",
    ] == text(many).splitlines()


def test_whom_quotas_are_for_is_told_once() -> None:
    """For all kinds of quota together that have the same reason."""
    entities = {"produce": "each user", "fetch": "each user", "request": "the current quotas"}
    assert [
        "quotas for each user: produce, fetch",
        "quotas for the current quotas: request",
    ] == text(replace(outcome({}), entities=entities)).splitlines()


def test_what_was_left_out_of_the_volume_history_is_counted() -> None:
    """As text and for programs."""
    faults = {"readings without sizes": 1_200, "lines that are cut off": 1}
    made = replace(outcome({}), volume_faults=faults)
    assert [
        "left out of the volume history: lines that are cut off: 1",
        "left out of the volume history: readings without sizes: 1,200",
    ] == text(made).splitlines()
    assert faults == document(made)["volume_faults"]


def test_costs_are_summed_up_by_owner() -> None:
    """The largest is first; what is left out is counted by days."""
    day = date(2026, 11, 20)
    costs = (
        Cost(day, "shop", "produced", None, "GB", Decimal("0.10"), "EUR"),
        Cost(day, "(nobody)", "produced", None, "GB", Decimal("1000.50"), "EUR"),
        Cost(day, "shop", "fetched", None, "GB", Decimal("0.20"), "EUR"),
        Cost(day, None, "stored", None, "GB-Months", None, "EUR", left_out="no file"),
    )
    made = replace(outcome({}), costs=costs)
    assert [
        "costs of (nobody): 1,000.50 EUR",
        "costs of shop: 0.30 EUR",
        "costs leave out stored on 1 day: no file",
    ] == text(made).splitlines()
    said = document(made)
    assert [
        {"owner": "(nobody)", "currency": "EUR", "cost": "1000.50"},
        {"owner": "shop", "currency": "EUR", "cost": "0.30"},
    ] == said["costs"]
    assert [{"kind": "stored", "reason": "no file", "days": 1}] == said["costs_left_out"]


def test_the_brokers_are_named_with_what_names_them() -> None:
    """A wrong id would be silent otherwise; the most files do not hide one file."""
    brokers = {
        BrokerName("default", 3, "the folder kafka-3"): 1_200,
        BrokerName("default", 4, "--broker-pattern (n4)"): 1,
    }
    made = outcome({}, files=1_201, brokers=brokers)
    assert (
        "brokers: 3 by the folder kafka-3 (1,200 files), 4 by --broker-pattern (n4) (1 file)"
    ) == text(made).splitlines()[1]
    assert {
        "cluster": "default",
        "broker": 4,
        "named_by": "--broker-pattern (n4)",
        "files": 1,
    } in cast("list[object]", document(made)["brokers"])


def test_the_brokers_of_several_clusters_and_of_a_large_one() -> None:
    """Each cluster has its own line, which does not grow without end."""
    brokers = {BrokerName("eu", id_, "the folder x"): 2 for id_ in range(25)}
    brokers[BrokerName("us", 1, "the folder 1")] = 1
    made = outcome({}, clusters=("eu", "us"), files=51, brokers=brokers)
    eu, us = text(made).splitlines()[2:]
    assert eu.startswith("brokers of eu: 0 by the folder x (2 files), 1 by ")
    assert eu.endswith(" 19 by the folder x (2 files), and 5 more")
    assert "brokers of us: 1 by the folder 1 (1 file)" == us


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        (
            "produce:user=alise:x2",
            "no charges to user=alise for produce; nearest: user=alice, user=alicia",
        ),
        (
            "produce:user=zoltan-the-unknown:=5",
            "no charges to user=zoltan-the-unknown for produce;"
            " known: user=<default>, user=alice, user=alicia, ...",
        ),
        ("request:user=alice:x2", "no charges for request"),
        ("request:=50", "no charges for request"),
    ],
)
def test_a_scenario_of_nobody_is_reported_with_the_nearest_names(asked: str, nearest: str) -> None:
    """A mistyped name would be silent otherwise."""
    assert [f"--scenario {asked}: {nearest}"] == scenarios_of_nobody([scenario(asked)], REPLAYED)


@pytest.mark.parametrize("asked", ["x2", "fetch:x2", "produce:user=alice:x2"])
def test_a_scenario_of_somebody_is_not(asked: str) -> None:
    """A scenario of everybody is not reported either."""
    assert [] == scenarios_of_nobody([scenario(asked)], REPLAYED)


def test_what_a_plan_leaves_out_is_reported() -> None:
    """Quotas of too low a confidence are counted, and names that are unclear are listed."""
    rows: list[dict[str, object]] = [
        {"entity": "user=alice", "quota": 1.0, "confidence": "low", "refused": None},
        {"entity": "user=bob", "quota": None, "confidence": "low", "refused": "no candidate"},
        {"entity": "user=carol", "quota": 1.0, "confidence": "high", "refused": None},
    ]
    unclear = {"quota": None, "confidence": "low", "refused": UNCLEAR_NAME}
    names = ("<default>", "a,client-id=b", "<default>")
    rows += [{**unclear, "entity": f"client-id={name}"} for name in names]
    assert [
        "the plan leaves out 1 quota of a confidence below medium; the option --least-confidence"
        " includes such quotas, and the table gold_recommendation has them",
        "the plan leaves out 2 entities, because Kafka would take a name for another entity:"
        " client-id=<default>, client-id=a,client-id=b",
    ] == left_out_of_plan(rows, "medium")
    assert [] == left_out_of_plan(rows[:3], "low")


def test_a_plan_is_reported_with_what_to_do_with_it() -> None:
    """The line says how many it is for; one for nobody says so."""
    diff = "compare: throttle-sidecar quotas diff --plan"
    assert (
        f"plan: p.json has quotas of 1 entity; {diff} p.json --bootstrap-server HOST:PORT"
    ) == plan_line(Path("p.json"), 1)
    assert (
        f"plan: my plan.json has quotas of 2 entities; {diff} 'my plan.json'"
        " --bootstrap-server HOST:PORT"
    ) == plan_line(Path("my plan.json"), 2)
    assert "plan: p.json has no quotas; the table gold_recommendation has the reasons" == plan_line(
        Path("p.json"), 0
    )
