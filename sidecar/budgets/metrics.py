"""The metrics of owners with a storage budget. Their number is bounded by that of the owners.

Example: an owner at 120 GB of 200 GB has ``kafka_throttle_budget_used_bytes{owner="etl"}`` 1.2e11.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from sidecar.budgets.watch import BudgetWatch

_LABELS: Final = ["owner"]


def budget_metrics(watch: BudgetWatch | None) -> Iterator[Metric]:
    """Yield all metrics, even without budgets."""
    prefix = "kafka_throttle_budget"
    used = GaugeMetricFamily(
        f"{prefix}_used_bytes",
        "Size of the topics of an owner with a storage budget, as the budget counts them; the"
        " least it can be while kafka_throttle_budget_unseen_brokers is above 0.",
        labels=_LABELS,
    )
    soft = GaugeMetricFamily(
        f"{prefix}_soft_bytes",
        "Size from which on the owner's writers are slowed.",
        labels=_LABELS,
    )
    hard = GaugeMetricFamily(
        f"{prefix}_hard_bytes", "Size at which the owner's writers are paused.", labels=_LABELS
    )
    factor = GaugeMetricFamily(
        f"{prefix}_factor",
        "Factor of the owner's writers by its budget: 1 below the soft size, 0 at the hard"
        " size. It applies only if brokers have the authorizer, or by client quotas to the"
        " owner's principals.",
        labels=_LABELS,
    )
    seconds = GaugeMetricFamily(
        f"{prefix}_seconds_to_hard",
        "Time until the hard size at the growth of the last minutes; no series if that is more"
        " than ten years.",
        labels=_LABELS,
    )
    unseen = GaugeMetricFamily(
        f"{prefix}_unseen_brokers",
        "Brokers with a log dir whose sizes are not known for longer than the validity. The"
        " replicas there are missing in used bytes.",
    )
    missing = 0
    for owner, usage in () if watch is None else watch.usages.items():
        used.add_metric([owner], usage.used_bytes)
        soft.add_metric([owner], usage.budget.soft_bytes)
        hard.add_metric([owner], usage.budget.hard_bytes)
        factor.add_metric([owner], usage.factor)
        if usage.seconds_to_hard is not None:
            seconds.add_metric([owner], usage.seconds_to_hard)
        missing = max(missing, len(usage.unseen))
    unseen.add_metric([], missing)
    yield from (used, soft, hard, factor, seconds, unseen)
