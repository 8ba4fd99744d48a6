"""Contains failures of optional parts of the daemon: they are logged, counted and shown.

A failure affects only its own part. If a collector, a block of the page or a listener raises, the
caller uses a default and continues. Each kind of error is logged with one traceback, until the part
has worked again.

Example: a collector of ``history`` raises at each scrape, 3 times: one traceback, the metric
``kafka_throttle_capability_failures_total{capability="history"}`` is 3, and the page says so.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

_log = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Failing:
    """A part that failed at its last use.

    Attributes:
        capability: the capability with the part.
        what: the task, route, collector, block or listener.
        kind: the error's class. Its text may contain secrets, so no page shows it.
    """

    capability: str
    what: str
    kind: str


class CapabilityFailures(Collector):
    """Counts failures by capability, from zero; a collector of its own metric."""

    def __init__(self, capabilities: Iterable[str]) -> None:
        self._counts = dict.fromkeys(capabilities, 0)
        self._failing: dict[tuple[str, str], Failing] = {}

    @property
    def failing(self) -> tuple[Failing, ...]:
        """The parts that do not work now, by capability."""
        return tuple(each for _, each in sorted(self._failing.items()))

    def count(self, capability: str) -> int:
        """How often something of a capability failed since the start."""
        return self._counts.get(capability, 0)

    def failed(self, capability: str, what: str, error: BaseException) -> None:
        """Something failed."""
        self._counts[capability] = self.count(capability) + 1
        now = Failing(capability, what, type(error).__name__)
        if self._failing.get((capability, what)) != now:
            _log.error(
                "%s: %s failed because of a bug in the sidecar; please report this",
                capability,
                what,
                exc_info=error,
            )
        self._failing[capability, what] = now

    def works(self, capability: str, what: str) -> None:
        """Note that a part did not fail."""
        if self._failing.pop((capability, what), None) is not None:
            _log.info("%s: %s works again", capability, what)

    def call(self, capability: str, what: str, function: Callable[[], _T], default: _T) -> _T:
        """Call a function of a capability; return the default when it raises."""
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - no optional part is worth the daemon
            self.failed(capability, what, error)
            return default
        self.works(capability, what)
        return result

    def collect(self) -> Iterator[Metric]:
        """The counts."""
        family = CounterMetricFamily(
            "kafka_throttle_capability_failures",
            "Unexpected failures of optional parts: of tasks, which are restarted, routes,"
            " collectors and others.",
            labels=["capability"],
        )
        for capability, count in self._counts.items():
            family.add_metric([capability], count)
        yield family
