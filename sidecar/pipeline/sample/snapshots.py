"""Quotas and capacity of the made-up cluster, as ``quotas show --json`` and ``capacity --json``."""

from sidecar.pipeline.sample.settings import Sample

Document = dict[str, object]


def quota_snapshot(sample: Sample) -> Document:
    """The quotas in force at the start."""
    del sample
    return {"quotas": [{"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1e6}}]}


def capacity_snapshot(sample: Sample) -> Document:
    """Of each broker: Kafka's defaults, 8 I/O threads and 3 network threads."""
    return {
        "brokers": [
            {
                "broker_id": broker,
                "num.io.threads": 8,
                "num.network.threads": 3,
                "quota.window.size.seconds": 1,
                "capacity_percent": 1100,
                "io_capacity_percent": 800,
            }
            for broker in range(sample.brokers)
        ],
        "smallest_capacity_percent": 1100,
        "warnings": [],
    }
