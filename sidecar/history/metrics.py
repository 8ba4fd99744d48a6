"""The metrics of the volume history: what was written of what was seen, and what it takes.

Example: a full disk at a poll a minute: an hour later ``kafka_throttle_history_lost_total`` is 60
higher, and ``kafka_throttle_history_observations_total`` is where it was.
"""

from collections.abc import Iterable
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sidecar.history import History
from sidecar.history.recorder import Counts

_PREFIX: Final = "kafka_throttle_history"


class HistoryCollector(Collector):
    """Reads a history's counts at each scrape."""

    def __init__(self, history: History | None) -> None:
        self._history = history

    def collect(self) -> Iterable[Metric]:
        """Every metric is there, whether there is a history or none."""
        history = self._history
        counts = Counts() if history is None else history.counts
        removed = 0 if history is None else history.folder.removed
        for name, text, value in (
            ("observations", "Observations that are in the volume history.", counts.written),
            ("lost", "Observations that could not be written to it.", counts.lost),
            ("removed_files", "Files of it that were removed for its bound.", removed),
        ):
            yield CounterMetricFamily(f"{_PREFIX}_{name}", text, value)
        yield GaugeMetricFamily(
            f"{_PREFIX}_bytes",
            "What all histories in its folder take.",
            0 if history is None else history.folder.bytes,
        )
