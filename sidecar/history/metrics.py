"""The metrics of the volume history: written and lost observations, and the history's size.

Example: the disk is full for an hour, with a poll every minute.
``kafka_throttle_history_lost_total`` grows by 60, and ``kafka_throttle_history_observations_total``
does not change.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from sidecar.history import History
from sidecar.history.recorder import Counts

_PREFIX: Final = "kafka_throttle_history"


def history_metrics(history: History | None) -> Iterator[Metric]:
    """Yield all metrics, even without a history."""
    counts = Counts() if history is None else history.counts
    removed = 0 if history is None else history.folder.removed
    for name, text, value in (
        ("observations", "Observations written to the volume history.", counts.written),
        ("lost", "Observations that could not be written to the volume history.", counts.lost),
        (
            "removed_files",
            "Files of the volume history that were removed because of its bound.",
            removed,
        ),
    ):
        yield CounterMetricFamily(f"{_PREFIX}_{name}", text, value)
    yield GaugeMetricFamily(
        f"{_PREFIX}_bytes",
        "Size of all histories in the folder of the volume history.",
        0 if history is None else history.folder.bytes,
    )
