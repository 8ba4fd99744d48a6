"""``quotas show``: the quotas that are set."""

import json
import math
import struct

import pytest

from sidecar.quotas.entities import DEFAULT, Entity
from tests.sidecar.cli.quotas.conftest import Run
from tests.support.fake_broker import FakeCluster
from tests.support.fake_quotas import FakeQuotas

QUOTAS = {
    Entity("ann", DEFAULT): {"request_percentage": 9.2, "producer_byte_rate": 1e6},
    Entity(ip="192.0.2.1"): {"connection_creation_rate": 2.0},
}


def test_a_row_for_each_quota(run: Run, quotas: FakeQuotas) -> None:
    """It has the entity, the quota's name, and its limit in digits."""
    quotas.quotas = dict(QUOTAS)
    result = run("show")
    assert (0, "") == (result.exit_code, result.stderr)
    expected = [
        ["user", "'ann',", "client-id", "the", "default", "request_percentage", "9.2"],
        ["user", "'ann',", "client-id", "the", "default", "producer_byte_rate", "1000000"],
        ["ip", "'192.0.2.1'", "connection_creation_rate", "2"],
    ]
    assert expected == [line.split() for line in result.stdout.splitlines() if line.strip()][2:]


def test_one_quota_only(run: Run, quotas: FakeQuotas) -> None:
    """Entities that don't have it are left out."""
    quotas.quotas = dict(QUOTAS)
    document = json.loads(run("show", "--key", "producer_byte_rate", "--json").stdout)
    expected = [
        {"entity": {"user": "ann", "client-id": None}, "quotas": {"producer_byte_rate": 1e6}}
    ]
    assert expected == document["quotas"]


def test_the_order_is_the_same_each_time(run: Run, quotas: FakeQuotas) -> None:
    """Brokers answer in any order: users are first, then client-ids and addresses, by name."""
    entities = [Entity(ip="a"), Entity(client_id="b"), Entity("b"), Entity(DEFAULT), Entity("a")]
    quotas.quotas = {entity: {"request_percentage": 1.0} for entity in entities}
    shown = json.loads(run("show", "--json").stdout)["quotas"]
    expected = [{"user": None}, {"user": "a"}, {"user": "b"}, {"client-id": "b"}, {"ip": "a"}]
    assert expected == [each["entity"] for each in shown]


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_quota_without_end_is_a_number(
    run: Run, quotas: FakeQuotas, cluster: FakeCluster, value: float
) -> None:
    """Kafka takes both as a percentage, and neither limits anybody. JSON has no name for them."""
    quotas.quotas = {Entity("mirror"): {"request_percentage": 12345.0}}
    finite, infinite = struct.pack(">d", 12345.0), struct.pack(">d", value)
    for broker in cluster.brokers.values():
        broker.twist = lambda _connection, _request, frame: frame.replace(finite, infinite)
    assert f"{2**63}\n" in run("show").stdout
    shown = json.loads(run("show", "--json").stdout, parse_constant=pytest.fail)["quotas"]
    assert {"request_percentage": 2.0**63} == shown[0]["quotas"]


def test_none_is_said(run: Run) -> None:
    """The output is no empty table; a name that nothing has is said too."""
    assert "No quota is set.\n" == run("show").stdout
    assert "No request_rate is set.\n" == run("show", "--key", "request_rate").stdout
