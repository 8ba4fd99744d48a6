"""Sets the quotas that the pipeline recommends, on the brokers whose logs it has read.

The tenants of the recorded round send the same traffic again, and then one of them sends at five
times its usual rate. The recommendation is right if no tenant of the same traffic waits longer than
predicted, and if the five times are throttled to the quota.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kafka_lab.cluster import Cluster
from kafka_lab.pipeline.checks import Check, Excess, Job, advice_checks, excess_check
from kafka_lab.pipeline.compared_tables import Advice
from kafka_lab.pipeline.recorded_cluster import LISTENER, Round, set_quotas
from kafka_lab.rounds import send
from kafka_lab.tenant_traffic import Plan, Tenant
from sidecar.errors import ClusterError
from sidecar.quotas.entities import QuotaKey
from sidecar.quotas.quota_file import read_quota_file
from usage_pipeline.recommend.terms import recommended_quotas

_SETTLE_S: Final = 12.0
"""The time until every node applies the quotas, and every window is empty."""


async def follow(
    cluster: Cluster, plan: Plan, before: Round, advice: Advice, report: Callable[[str], None]
) -> list[Check]:
    """Set the recommended quotas, send the same traffic again, and then too much.

    Args:
        cluster: the cluster of the recorded round.
        plan: the traffic.
        before: the round without quotas.
        advice: the recommendations from its logs.
        report: is called with each step.

    Raises:
        ClusterError: the cluster or a client failed, or a tenant has no recommendation.
    """
    file = before.folder / "plan.json"
    await asyncio.to_thread(_write, file, advice)
    quotas = await asyncio.to_thread(read_quota_file, file)
    await set_quotas(cluster, [(entity.parts(), limits) for entity, limits in quotas.items()])
    await asyncio.sleep(_SETTLE_S)
    report("sending the same traffic under the recommended quotas")
    after = await send(cluster.bootstrap_of(LISTENER), plan.advised)
    jobs = {
        user: Job(
            _predicted_ms(advice, user),
            after[user, client_id].longest_wait_s,
            sent.took_s,
            after[user, client_id].took_s,
        )
        for (user, client_id), sent in before.ledger.produced.items()
    }
    await asyncio.sleep(_SETTLE_S)
    report("sending five times the traffic of a tenant")
    excessive = plan.excessive
    (excess,) = (await send(cluster.bootstrap_of(LISTENER), [excessive])).values()
    quota = _quota(advice, excessive)
    return [
        *advice_checks(jobs),
        excess_check(excessive.user, Excess(quota, excess.bytes, excess.took_s)),
    ]


def _write(file: Path, advice: Advice) -> None:
    # The demo's traffic takes seconds, so every confidence is low.
    quotas = recommended_quotas(advice, least_confidence="low")
    file.write_text(json.dumps(quotas, indent=2), encoding="utf-8")


def _predicted_ms(advice: Advice, user: str) -> int:
    """Return the longest wait that any recommended quota of a user would have caused."""
    waits = [
        row["throttle_ms_max"]
        for row in advice
        if row["entity"] == f"user={user}" and row["quota"] is not None
    ]
    return max((wait for wait in waits if isinstance(wait, int)), default=0)


def _quota(advice: Advice, tenant: Tenant) -> float:
    for row in advice:
        if (row["entity"], row["key"]) == (f"user={tenant.user}", QuotaKey.PRODUCE):
            quota = row["quota"]
            if isinstance(quota, float):
                return quota
            raise ClusterError(f"no quota is recommended for {tenant.user}: {row['refused']}")
    raise ClusterError(f"nothing is recommended for {tenant.user}")
