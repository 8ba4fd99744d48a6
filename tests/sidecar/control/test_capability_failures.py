"""A failure of an optional part is logged once, counted, shown, and goes no further."""

import logging
from collections.abc import Iterable
from functools import partial

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sidecar.control.capability_failures import CapabilityFailures, Failing, GuardedCollector

FAILURES = "kafka_throttle_capability_failures_total"


def fails(error: Exception) -> int:
    raise error


def logged(caplog: pytest.LogCaptureFixture) -> list[bool]:
    """Whether each line has a traceback."""
    return [record.exc_info is not None for record in caplog.records]


def test_each_failure_is_counted_and_each_new_kind_has_one_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It fails three times alike, then otherwise, then works, then fails as at first."""
    failures = CapabilityFailures(["history"])
    bad = partial(fails, RecursionError("secret"))
    with caplog.at_level(logging.INFO):
        assert [7, 7, 7] == [failures.call("history", "block", bad, 7) for _ in range(3)]
        assert [True] == logged(caplog)
        failures.call("history", "block", partial(fails, KeyError("x")), 7)
        assert [True, True] == logged(caplog)
        assert [Failing("history", "block", "KeyError")] == [*failures.failing]
        assert 5 == failures.call("history", "block", lambda: 5, 7)
        assert not failures.failing
        failures.call("history", "block", bad, 7)
    assert [True, True, False, True] == logged(caplog)
    assert 5 == failures.count("history")


def test_a_part_that_works_does_not_hide_that_another_fails() -> None:
    """The page shows each by itself."""
    failures = CapabilityFailures(["a", "b"])
    failures.call("a", "block", partial(fails, ValueError()), None)
    failures.call("a", "observation", lambda: None, None)
    failures.call("b", "block", lambda: None, None)
    assert (Failing("a", "block", "ValueError"),) == failures.failing


class _Broken(Collector):
    """Fails when its first metric is passed already."""

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("broken", "never scraped", 1.0)
        raise RuntimeError("broken")


class _Sound(Collector):
    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("sound", "scraped", 1.0)


def test_a_collector_that_fails_costs_a_scrape_its_own_metrics_alone() -> None:
    """The counter exists at zero from the start, and counts each scrape that failed."""
    failures = CapabilityFailures(["history", "mutations"])
    registry = CollectorRegistry()
    registry.register(failures)
    for name, collector in (("history", _Broken()), ("mutations", _Sound())):
        registry.register(GuardedCollector(name, collector, failures))
    assert 0.0 == registry.get_sample_value(FAILURES, {"capability": "history"})
    before = failures.count("history")
    assert {"kafka_throttle_capability_failures", "sound"} == {
        metric.name for metric in registry.collect()
    }
    assert before + 1 == failures.count("history")
    assert 0 == failures.count("mutations")
