"""The known traffic has waits that never change what is sent next, by Kafka's arithmetic."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import pytest

from kafka_lab.tenant_traffic import CREATED_PARTITIONS, CREATOR, FULL, QUICK, QUOTAS, Plan
from sidecar.quotas.entities import Entity, QuotaKey
from sidecar.quotas.rate import QuotaWindow
from tests.support.prediction import Charge, Predictor

WINDOW = QuotaWindow(11, 1000)
PLANS = pytest.mark.parametrize("plan", [FULL, QUICK], ids=["full", "quick"])
Connection = tuple[str, str, int]


def charges(plan: Plan) -> Iterator[tuple[Connection, Charge]]:
    """The charges by connection; each record is a request of its own."""
    for tenant in plan.senders:
        for number, sends in enumerate(tenant.connections):
            for send in sends:
                who = (tenant.user, tenant.client_id)
                at_ms = round(send.at_s * 1000)
                yield (*who, number), Charge(at_ms, QuotaKey.PRODUCE, *who, send.bytes)
    for at_s in plan.created_at_s:
        who = (CREATOR, "portal")
        key = QuotaKey.CONTROLLER_MUTATION
        yield (*who, 0), Charge(round(at_s * 1000), key, *who, CREATED_PARTITIONS)


def waits(plan: Plan, factor: float) -> dict[Connection, list[tuple[int, int]]]:
    """When each connection's requests come, and the throttle time after each."""
    predictor = Predictor(WINDOW)
    predictor.set_quotas(
        {
            Entity.of(dict(entity)): {key: limit * factor for key, limit in limits.items()}
            for entity, limits in QUOTAS.items()
        }
    )
    found = defaultdict(list)
    for connection, charge in sorted(charges(plan), key=lambda each: each[1].at_ms):
        found[connection].append((charge.at_ms, predictor.charge(charge).throttle_ms))
    return found


@PLANS
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_wait_is_over_before_the_connections_next_request(plan: Plan, factor: float) -> None:
    """Otherwise the same traffic would not come again under other quotas."""
    for connection, requests in waits(plan, factor).items():
        for (at_ms, wait_ms), (next_ms, _) in pairwise(requests):
            assert at_ms + wait_ms < next_ms, connection


@PLANS
def test_three_of_the_four_are_over_their_quotas(plan: Plan) -> None:
    """With doubled quotas only alice is over her quota. Both cases must be predicted."""
    throttled = [
        {
            user
            for (user, _, _), requests in waits(plan, factor).items()
            if any(dict(requests).values())
        }
        for factor in (1.0, 2.0)
    ]
    assert [{"alice", "carol", CREATOR}, {"alice"}] == throttled


@PLANS
def test_windows_are_empty_and_buckets_full_when_the_next_round_begins(plan: Plan) -> None:
    """The remaining charges of a round would count in the next, whose log does not have them."""
    last_s = max(
        send.at_s for tenant in plan.senders for each in tenant.connections for send in each
    )
    assert last_s <= plan.round_s
    assert plan.drain_s * 1000 > WINDOW.window_ms * WINDOW.samples
    (rate,) = QUOTAS[("user", CREATOR),].values()
    burst = rate * WINDOW.samples
    tokens, before_s = burst, 0.0
    for at_s in plan.created_at_s:
        tokens = min(burst, tokens + rate * (at_s - before_s)) - CREATED_PARTITIONS
        before_s = at_s
    tokens = min(burst, tokens + rate * (plan.round_s - before_s)) + 2 * rate * plan.drain_s
    assert tokens >= 2 * burst
