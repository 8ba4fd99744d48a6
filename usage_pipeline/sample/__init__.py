"""Generates request logs, a volume history and snapshots of any size from a seed.

They are for trials, tests and benchmarks without a cluster. Lines have the form of Kafka 4.3.
Tenants have daily cycles and bursts. Tenants with a quota are throttled by Kafka's own arithmetic,
so a replay of the same quotas gives the throttle times in the lines. The same seed and settings
give the same bytes.

Example: ``write_sample(Path("sample"), Sample(size_bytes=100_000_000))`` writes about 110,000 lines
of 3 brokers to ``sample/request-logs``, a week of history to ``sample/volumes``,
``sample/quotas.json`` and ``sample/capacity.json``.
"""

from usage_pipeline.sample.settings import Sample
from usage_pipeline.sample.writing import Written, write_sample

__all__ = ["Sample", "Written", "write_sample"]
