"""Terms, capacity and the document of recommended quotas."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar.quotas.entities import Entity
from sidecar.quotas.quota_file import read_quota_file
from usage_pipeline.recommend.terms import (
    CONFIDENCES,
    Terms,
    TermsError,
    below_confidence,
    capacity_of,
    entities_of_brokers,
    entity_parts,
    floor,
    recommended_quotas,
)

ROW = {
    "quota_type": "produce",
    "entity": "user=alice",
    "key": "producer_byte_rate",
    "quota": 2.5e6,
    "confidence": "medium",
}


def test_apply_takes_the_document(tmp_path: Path) -> None:
    """``quotas diff`` and ``apply`` read it: each entity has an entry with all its quotas."""
    rows = [
        ROW,
        {**ROW, "quota_type": "fetch", "key": "consumer_byte_rate", "quota": 7e6},
        {**ROW, "entity": "user=bob,client-id=web", "confidence": "high"},
        {**ROW, "entity": "client-id=etl,1"},
    ]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(recommended_quotas(rows)))
    expected = {
        Entity("alice"): {"consumer_byte_rate": 7e6, "producer_byte_rate": 2.5e6},
        Entity("bob", "web"): {"producer_byte_rate": 2.5e6},
        Entity(client_id="etl,1"): {"producer_byte_rate": 2.5e6},
    }
    assert expected == read_quota_file(path)


def test_what_can_not_be_set_is_left_out() -> None:
    """These are refused ones, producer ids, and names that hide where they end."""
    rows = [
        {**ROW, "quota": None},
        {**ROW, "quota_type": "producer_ids"},
        {**ROW, "entity": "user=a,client-id=b,client-id=c"},
        {**ROW, "entity": "client-id=<default>"},
        {**ROW, "entity": "user=<default>"},
        {**ROW, "entity": "user=bob,client-id=<default>"},
    ]
    assert {"quotas": []} == recommended_quotas(rows)


def test_the_plan_has_quotas_of_the_least_confidence() -> None:
    """Those of an hour of logs are left out, unless they are asked for."""
    rows = [{**ROW, "confidence": each, "entity": f"user={each}"} for each in CONFIDENCES]

    def entities(**options: str) -> list[object]:
        return [each["entity"] for each in recommended_quotas(rows, **options)["quotas"]]

    assert [{"user": "high"}, {"user": "medium"}] == entities()
    assert [{"user": "high"}] == entities(least_confidence="high")
    assert 3 == len(entities(least_confidence="low"))
    rows.append({**rows[0], "quota": None})
    assert 1 == below_confidence(rows, "medium")
    assert 2 == below_confidence(rows, "high")


def test_an_entity_by_its_parts() -> None:
    """A client's name that is written as Kafka writes the default is no default."""
    assert {"user": "a=b"} == entity_parts("user=a=b")
    assert entity_parts("user=<default>,client-id=x") is None
    assert entity_parts("ip=::1") is None


def test_capacity_is_of_what_is_known() -> None:
    """The document has threads, the caller sets bytes; a disk slower than the network counts."""
    document = {"smallest_capacity_percent": 1100}
    assert {"request": 1100.0} == capacity_of(document)
    expected = {"request": 1100.0, "produce": 4e8, "fetch": 1.25e9}
    assert expected == capacity_of(document, network_bytes_per_s=1.25e9, disk_bytes_per_s=4e8)
    assert {} == capacity_of(None)
    with pytest.raises(TermsError, match="quotas capacity --json"):
        capacity_of({"quotas": []})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Terms(target=1.5), "target must be from 0 to 1"),
        (lambda: Terms(half_life_days=0.0), "half-life"),
        (lambda: Terms(floors={"prodce": 1.0}), "prodce"),
        (lambda: Terms(floors={"produce": -1.0}), "a floor must be at least 0"),
        (lambda: floor("prodce=1"), 'write a floor like "produce=100000"'),
        (lambda: floor("produce=1MB"), "a number from 0"),
        (lambda: floor("produce=inf"), "a number from 0"),
        (lambda: floor("produce=-1"), "a number from 0"),
    ],
)
def test_terms_out_of_range_are_refused(make: Callable[[], object], message: str) -> None:
    """The message says what is wrong."""
    with pytest.raises(TermsError, match=message):
        make()


def test_a_floor_as_it_is_written() -> None:
    """It is of one type; without a number it is 0."""
    assert [("produce", 100_000.0), ("request", 0.0)] == [floor("produce=1e5"), floor("request=0")]


def test_brokers_are_among_the_clients_of_these() -> None:
    """Whatever level a quota is on: by user, by client-id, or by both; nobody else is."""
    clients = frozenset({("kafka", "1"), ("ANONYMOUS", "broker-2-fetcher-0"), ("ANONYMOUS", "")})
    entities, prefixes = entities_of_brokers(
        Terms(cluster_users=frozenset({"ops"}), cluster_clients=clients)
    )
    assert {
        *("user=kafka", "user=ops", "user=ANONYMOUS"),
        *("client-id=1", "user=ANONYMOUS,client-id=1"),
        *("client-id=broker-2-fetcher-0", "user=ANONYMOUS,client-id=broker-2-fetcher-0"),
    } == {*entities}
    # A login is the brokers' with any client-id; without one, other client-ids are tenants'.
    assert ["user=kafka,client-id=", "user=ops,client-id="] == prefixes
    assert ([], []) == entities_of_brokers(Terms())
