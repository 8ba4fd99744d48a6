"""The generated quotas and capacity, as ``quotas show --json`` and ``capacity --json``."""

from sidecar.quotas.entities import QuotaKey
from sidecar.quotas.request_time.thread_capacity import BrokerCapacity
from usage_pipeline.sample.admin import USER
from usage_pipeline.sample.limits import MUTATIONS, limits
from usage_pipeline.sample.settings import Sample

Document = dict[str, object]
_IO_THREADS, _NETWORK_THREADS, _WINDOW_S = 8, 3, 1
"""Kafka's defaults."""


def quota_snapshot(sample: Sample) -> Document:
    """Return the quotas at the start."""
    limited = [(limit.user, limit.key, limit.value) for limit in limits(sample)]
    return {
        "quotas": [
            {"entity": {"user": user}, "quotas": {key.value: value}}
            for user, key, value in (*limited, (USER, QuotaKey.CONTROLLER_MUTATION, MUTATIONS))
        ]
    }


def capacity_snapshot(sample: Sample) -> Document:
    """Return the capacity of each broker with Kafka's default threads."""
    each = [
        BrokerCapacity(broker, _IO_THREADS, _NETWORK_THREADS, _WINDOW_S)
        for broker in range(sample.brokers)
    ]
    return {
        "brokers": [
            {
                "broker_id": broker.broker_id,
                **broker.settings(),
                "capacity_percent": broker.percent,
                "io_capacity_percent": broker.io_percent,
            }
            for broker in each
        ],
        "smallest_capacity_percent": min(broker.percent for broker in each),
        "warnings": [],
    }
