"""The metrics: a collector that reads the board at each scrape, and costs no broker request.

Only the durations of polls are counted here. Gauges show the published snapshot, and counters the
board's tally, so a volume that is gone has no series. docs/metrics.md lists every name, label and
unit.

Example: two volumes at their limit, seen by 30 polls, add 60 to
``kafka_throttle_limit_violated_total``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from sidecar import __version__
from sidecar.control.board import Board, Snapshot
from sidecar.settings.values import RUNBOOKS_URL
from sidecar.throttle.decision import Source
from sidecar.throttle.full import soonest_full_at
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.throttle.throttled_fill import throttled_fills, throttled_since

_UNITS: Final = ("bytes_per_second", "bytes", "seconds")
"""The units that a name may end in, for OpenMetrics' UNIT."""

_DURATIONS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""From three brokers nearby (some ms) to the longest deadline of a poll (10 s)."""


class SidecarRegistry(CollectorRegistry):
    """A registry with the histogram that the poller observes.

    Attributes:
        poll_duration: durations of polls, seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self._collectors: list[Collector] = []
        self.poll_duration = Histogram(
            "kafka_throttle_poll_duration_seconds",
            "The duration of polls, including failed ones, in seconds.",
            buckets=_DURATIONS_S,
            registry=self,
        )

    def register(self, collector: Collector) -> None:
        """Add a collector; one that yields its metrics lazily must read their values at once."""
        super().register(collector)
        self._collectors.append(collector)

    def collect(self) -> Iterable[Metric]:
        """Yield every metric with the unit that its name ends in, without ``_created`` series.

        All collectors begin before the first metric is written, so that all metrics show one
        moment. The library's own switch for ``_created`` series is global.
        """
        for metric in chain.from_iterable([each.collect() for each in self._collectors]):
            # The library exposes the process's metrics without a unit.
            metric.unit = metric.unit or _unit(metric.name)
            if metric.type == "histogram":
                metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric


def build_registry(
    board: Board, wall: Callable[[float], float], runbooks_url: str = RUNBOOKS_URL
) -> SidecarRegistry:
    """Return a registry with the metrics of the board and of the process.

    Args:
        board: the board, which is read at each scrape.
        wall: steady seconds -> epoch seconds of the machine's clock.
        runbooks_url: where alerts link to.
    """
    registry = SidecarRegistry()
    registry.register(_BoardCollector(board, wall, runbooks_url))
    ProcessCollector(registry=registry)
    return registry


class _BoardCollector(Collector):
    """The board as metrics."""

    def __init__(self, board: Board, wall: Callable[[float], float], runbooks_url: str) -> None:
        self._board = board
        self._wall = wall
        self._runbooks_url = runbooks_url
        self._labels: dict[tuple[int, str], dict[str, str]] = {}

    def collect(self) -> Iterable[Metric]:
        """Read the board once. The thousands of metrics of volumes are yielded lazily."""
        snapshot = self._board.snapshot
        return chain(
            [*self._decision(snapshot), *self._readers(), *self._counts()],
            self._volumes(snapshot.memory),
            [self._throttled_fill()],
        )

    def _decision(self, snapshot: Snapshot) -> Iterator[Metric]:
        decision, memory = snapshot.decision, snapshot.memory
        yield _gauge(
            "factor",
            "The throttle factor that applies, 0 to 1, whatever its source.",
            decision.factor,
        )
        yield _gauge(
            "shadow_factor",
            "The factor that was decided. In observe mode it does not apply, and the factor is 1.",
            decision.decided.factor,
        )
        yield _gauge(
            "stop_line_reached",
            "1 while the stop line is reached, so that brokers with the authorizer refuse all "
            "producers except excluded principals; else 0.",
            float(decision.stop_line_reached),
        )
        source = GaugeMetricFamily(
            "kafka_throttle_source",
            "1 for the source of the factor that applies (observation, fallback, override, "
            "disabled, shadow), 0 for the others.",
            labels=["source"],
        )
        for name in Source:
            source.add_metric([name.value], float(decision.source is name))
        yield source
        yield _gauge(
            "generation",
            "The generation of the decision: it starts at 1, and grows by one with each change.",
            snapshot.generation,
        )
        yield _gauge(
            "valid_until_timestamp_seconds",
            "The end of the decision's validity without news; +Inf when only news can end it.",
            float("inf") if decision.valid_until is None else self._wall(decision.valid_until),
        )
        yield _gauge(
            "validity_duration_seconds",
            "How long a computed factor may be used while newer polls fail, by the settings.",
            self._board.rules.validity_s,
        )
        dirs = [
            len(
                {state.volume.log_dir for state in broker.volumes}
                | {d.log_dir for d in broker.offline}
            )
            for broker in memory.active_brokers()
        ]
        yield _gauge(
            "active_brokers",
            "Brokers of the cluster that are not fenced, by the last observation.",
            len(memory.active),
        )
        yield _gauge(
            "active_log_dirs", "Log dirs of the active brokers, including offline ones.", sum(dirs)
        )

    def _readers(self) -> Iterator[Metric]:
        board, now = self._board, self._board.now()
        leaks = board.snapshot.leaks
        volumes = board.snapshot.memory.valid_volumes(board.rules.validity_s, now)
        ends_at = soonest_full_at(volumes, board.leak_rules.window_s(leaks))
        yield _gauge(
            "seconds_to_full",
            "The time until the first online volume of an active broker is full at its fill rate; "
            "+Inf when none is within ten years.",
            float("inf") if ends_at is None else max(0.0, ends_at - now),
        )
        yield _gauge(
            "leak_share",
            "The smallest share of its leak budget that a broker may let through while producers "
            "are throttled; 1 when no volume would become full.",
            leaks.share,
        )
        readers = board.readers.recent(now)
        yield _gauge(
            "readers",
            "Brokers whose quota callbacks read the factors here in the last 10 minutes.",
            len(readers),
        )
        yield _gauge(
            "readers_in_emergency",
            "Readers whose pauses are longer than usual, because a volume will soon be full.",
            sum(reader.report.emergency for reader in readers),
        )

    def _counts(self) -> Iterator[Metric]:
        tally = self._board.tally
        yield CounterMetricFamily(
            "kafka_throttle_fallback_applied",
            "How often the fallback began to apply; a start with the fallback does not count.",
            tally.fallback_applied,
        )
        yield CounterMetricFamily(
            "kafka_throttle_throttles",
            "How often the factor fell from 1; often in minutes means that it flaps.",
            tally.throttles,
        )
        yield CounterMetricFamily(
            "kafka_throttle_limit_violated",
            "How often a volume began to violate the limit.",
            tally.limit_violated,
        )
        failures = CounterMetricFamily(
            "kafka_throttle_poll_failures",
            "Failed polls, and failed calls to single brokers, by kind of failure.",
            labels=["kind"],
        )
        for kind, count in tally.failures.items():
            failures.add_metric([kind.value], count)
        yield failures
        yield _gauge(
            "last_success_timestamp_seconds",
            "When the last whole poll succeeded; 0 before the first.",
            0.0 if tally.succeeded_at is None else self._wall(tally.succeeded_at),
        )
        build = GaugeMetricFamily(
            "kafka_throttle_build_info",
            "1; the label is the sidecar's version.",
            labels=["version"],
        )
        build.add_metric([__version__], 1.0)
        yield build
        runbooks = GaugeMetricFamily(
            "kafka_throttle_runbooks_info",
            "1; the label is the address of the runbooks, for alerts' links.",
            labels=["url"],
        )
        runbooks.add_metric([self._runbooks_url], 1.0)
        yield runbooks

    def _volumes(self, memory: Memory) -> Iterator[Metric]:
        states = list(memory.volumes())
        keys = [state.volume.place for state in states]
        # Kept from scrape to scrape: 12,000 new dicts each time would cost a full collection.
        before = self._labels
        labels = self._labels = {key: before.get(key) or _labels(*key) for key in keys}
        for name, (text, value) in _OF_A_VOLUME.items():
            family = _gauge(f"volume_{name}", text, labels=_LABELS)
            family.samples = [
                Sample(family.name, labels[key], number)
                for key, state in zip(keys, states, strict=True)
                if (number := value(state)) is not None
            ]
            if name == "online":
                family.samples += [
                    Sample(family.name, _labels(broker_id, offline.log_dir), 0.0)
                    for broker_id, broker in memory.brokers.items()
                    for offline in broker.offline
                    if (broker_id, offline.log_dir) not in labels
                ]
            yield family

    def _throttled_fill(self) -> Metric:
        snapshot = self._board.snapshot
        since = throttled_since(snapshot.decision.factor, snapshot.since)
        family = _gauge(
            "fill_while_throttled_bytes_per_second",
            "How fast a volume fills although producers are throttled (factor 0), over 5 minutes of"
            " readings that begin 5 s after the throttle; no series for any other volume.",
            labels=_LABELS,
        )
        family.samples = [
            Sample(
                family.name,
                _labels(*each.state.volume.place),
                each.bytes_per_second,
            )
            for each in throttled_fills(
                snapshot.memory, since, self._board.rules.validity_s, self._board.now()
            )
        ]
        return family


_LABELS: Final = ("broker", "log_dir")


def _labels(broker_id: int, log_dir: str) -> dict[str, str]:
    return dict(zip(_LABELS, (str(broker_id), log_dir), strict=True))


_OF_A_VOLUME: Final[Mapping[str, tuple[str, Callable[[VolumeState], float | None]]]] = {
    "total_bytes": (
        "The size of the file system that the log dir lies on.",
        lambda state: state.volume.total_bytes,
    ),
    "available_bytes": (
        "The bytes that the broker may still write there, as last read.",
        lambda state: state.volume.available_bytes,
    ),
    "limit_violated": (
        "1 when the volume violated the limit when last read, else 0.",
        lambda state: float(state.violates),
    ),
    "stop_line_violated": (
        "1 when the volume violated the stop line when last read, else 0; no series without a "
        "stop line.",
        lambda state: None if state.stop_line_verdict is None else float(state.is_at_stop_line),
    ),
    "online": (
        "0 while its broker reports the log dir without sizes, else 1; the only series of a log "
        "dir that was never read.",
        lambda state: float(state.online),
    ),
    "fill_bytes_per_second": (
        "How fast the volume fills, negative while it empties; no series while that is unknown, "
        "its broker reports no sizes, or its broker is not active.",
        lambda state: state.fill.bytes_per_second if state.online else None,
    ),
    "limit_bytes": (
        "The available bytes at which the volume violates the limit; with a limit that is a ratio, "
        "they depend on its size.",
        lambda state: state.verdict.threshold_bytes,
    ),
    "stop_line_bytes": (
        "The available bytes at which the volume reaches the stop line, never more than at the "
        "limit; no series without a stop line.",
        lambda state: state.stop_line_bytes,
    ),
}


def _gauge(
    name: str, text: str, value: float | None = None, labels: Sequence[str] | None = None
) -> Metric:
    return GaugeMetricFamily(f"kafka_throttle_{name}", text, value, labels)


def _unit(name: str) -> str:
    return next((unit for unit in _UNITS if name.endswith(f"_{unit}")), "")
