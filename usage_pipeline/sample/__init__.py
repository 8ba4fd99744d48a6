"""Made-up request logs, volume history and snapshots, of any size, from a seed.

For trials, tests and benchmarks without a cluster: the lines are as Kafka 4.3 writes them, tenants
have days and bursts, and those with a quota are throttled by Kafka's own arithmetic, so that a
replay of the quotas in force finds the throttle times in the lines. The same seed and
settings give the same bytes.

Example: ``write_sample(Path("sample"), Sample(size_bytes=100_000_000))`` writes about 110,000 lines
of 3 brokers in ``sample/request-logs``, a week of ``sample/volumes``, ``sample/quotas.json`` and
``sample/capacity.json``.
"""

from usage_pipeline.sample.settings import Sample
from usage_pipeline.sample.writing import Written, write_sample

__all__ = ["Sample", "Written", "write_sample"]
