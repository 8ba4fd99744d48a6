"""A board, and what a scrape says of it."""

from functools import partial

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sidecar.control.board import Board
from sidecar.control.metric_source import MetricSource
from sidecar.metrics.board_collector import build_registry
from sidecar.metrics.broker_metrics import broker_metrics
from sidecar.throttle.decision import Disabled, VolumeLimit
from sidecar.throttle.limits import Limit, MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.volumes import Observation
from tests.sidecar.throttle.build import FakeClock, with_rules

FACTORS = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 0.5)


class Scene:
    """A board, its registry, and the series that a scrape returns."""

    def __init__(self, *, disabled: bool = False, stop_line: Limit | None = None) -> None:
        self.clock = FakeClock()
        factors = with_rules(FACTORS, stop_line=stop_line)
        self.board = Board(Disabled() if disabled else factors, self.clock)
        self.registry = build_registry(self.board, lambda steady_s: steady_s + 1000)
        self.registry.register(MetricSource(partial(broker_metrics, self.board)))

    def see(self, observation: Observation) -> None:
        self.clock.now = observation.observed_at
        self.board.observe(observation)

    def scrape(self) -> str:
        return generate_latest(self.registry).decode()

    def series(self, name: str) -> dict[tuple[str, ...], float]:
        """The values of a metric by its label values, in the order of the labels' names."""
        return {
            tuple(value for _, value in sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.scrape())
            for sample in family.samples
            if sample.name == name
        }

    def by_broker(self, name: str) -> dict[str, float]:
        """The values of a metric by its one label, the broker."""
        return {broker: value for (broker,), value in self.series(f"kafka_throttle_{name}").items()}
