"""A collector of prometheus_client that calls a function at each scrape.

Example: ``registry.register(MetricSource(partial(history_metrics, history)))``.
"""

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class MetricSource(Collector):
    """Calls a function that returns metrics.

    Args:
        metrics: called at each scrape.
    """

    def __init__(self, metrics: Callable[[], Iterable[Metric]]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Collect all metrics before the first is written, so that they show one moment."""
        return [*self._metrics()]
