"""Every metric by its name, from the start on, and only what is on the board."""

import math
import shutil
import subprocess
from dataclasses import replace

import pytest
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics import parser as openmetrics

from sidecar.control.board import Board
from sidecar.metrics.board_collector import build_registry
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableRatio
from sidecar.throttle.memory import Override
from sidecar.throttle.readers import Report
from sidecar.throttle.rules import Rules
from sidecar.volumes import FailureKind
from tests.sidecar.metrics.scene import FACTORS, Scene
from tests.sidecar.throttle.build import FakeClock, reading, whole

PROMTOOL = shutil.which("promtool")
"""promtool is part of Debian's prometheus: apt-get install -y prometheus"""


def test_from_the_start_on() -> None:
    """Before any poll every metric is there; counters are at zero, no volume is there."""
    scene = Scene()
    assert scene.series("kafka_throttle_factor") == {(): 0.5}
    assert scene.series("kafka_throttle_shadow_factor") == {(): 0.5}
    assert scene.series("kafka_throttle_source") == {
        ("observation",): 0.0,
        ("fallback",): 1.0,
        ("override",): 0.0,
        ("disabled",): 0.0,
        ("shadow",): 0.0,
    }
    zero = [
        "fallback_applied_total",
        "throttles_total",
        "limit_violated_total",
        "active_brokers",
        "active_log_dirs",
        "last_success_timestamp_seconds",
        "readers",
        "readers_in_emergency",
        "stop_line_reached",
        "poll_duration_seconds_count",
        "poll_duration_seconds_sum",
    ]
    assert {name: {(): 0.0} for name in zero} == {
        name: scene.series(f"kafka_throttle_{name}") for name in zero
    }
    assert scene.series("kafka_throttle_poll_failures_total") == {
        (kind.value,): 0.0 for kind in FailureKind
    }
    assert scene.series("kafka_throttle_generation") == {(): 1.0}
    assert scene.series("kafka_throttle_valid_until_timestamp_seconds") == {(): math.inf}
    assert scene.series("kafka_throttle_validity_duration_seconds") == {(): 300.0}
    assert {} == scene.series("kafka_throttle_volume_online")
    names = [family.name for family in scene.registry.collect()]
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60})]))
    assert names == [family.name for family in scene.registry.collect()]


def test_what_is_only_observed() -> None:
    """The factor is 1, and what was decided has a series of its own; else they are the same."""
    observation = whole(0.0, [reading(1, 0.0, {"/a": 10})])
    for is_enforced, factor, source in ((False, 1.0, "shadow"), (True, 0.0, "observation")):
        board = Board(replace(FACTORS, is_enforced=is_enforced), FakeClock())
        board.observe(observation)
        registry = build_registry(board, lambda steady_s: steady_s)
        found = {
            name: registry.get_sample_value(f"kafka_throttle_{name}")
            for name in ("factor", "shadow_factor")
        }
        assert {"factor": factor, "shadow_factor": 0.0} == found
        assert 1.0 == registry.get_sample_value("kafka_throttle_source", {"source": source})


def test_volumes() -> None:
    """There is one series a volume, by broker and log dir, in bytes."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60, "/b": 60}), reading(2, 0.0, {"/a": 60})]))
    scene.see(whole(10.0, [reading(1, 10.0, {"/a": 10, "/b": 60}), reading(2, 10.0, {"/a": 70})]))
    keys = [("1", "/a"), ("1", "/b"), ("2", "/a")]
    expected = {
        "total_bytes": [100.0, 100.0, 100.0],
        "available_bytes": [10.0, 60.0, 70.0],
        "limit_bytes": [10.0, 10.0, 10.0],
        "limit_violated": [1.0, 0.0, 0.0],
        "online": [1.0, 1.0, 1.0],
        "fill_bytes_per_second": [5.0, 0.0, -1.0],
    }
    for name, values in expected.items():
        assert dict(zip(keys, values, strict=True)) == scene.series(f"kafka_throttle_volume_{name}")
    assert scene.series("kafka_throttle_active_brokers") == {(): 2.0}
    assert scene.series("kafka_throttle_active_log_dirs") == {(): 3.0}
    assert scene.series("kafka_throttle_factor") == {(): 0.0}
    assert scene.series("kafka_throttle_valid_until_timestamp_seconds") == {(): 1310.0}


def test_a_limit_that_is_a_ratio_is_reported_in_bytes() -> None:
    """The bytes are that ratio of each volume's size."""
    board = Board(VolumeLimit(Rules(MinAvailableRatio(0.25), 300.0), 0.5), FakeClock())
    ratio = build_registry(board, float)
    board.observe(whole(0.0, [reading(1, 0.0, {"/a": 60}), reading(2, 0.0, {"/a": 6}, total=8)]))
    labels = [{"broker": "1", "log_dir": "/a"}, {"broker": "2", "log_dir": "/a"}]
    name = "kafka_throttle_volume_limit_bytes"
    assert [25.0, 2.0] == [ratio.get_sample_value(name, each) for each in labels]


def test_a_stop() -> None:
    """The gauge is the decision's; each volume has the line's bytes, and whether it is there."""
    scene = Scene(stop_line=MinAvailableRatio(0.05))
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 6, "/b": 60})]))
    assert {(): 0.0} == scene.series("kafka_throttle_stop_line_reached")
    scene.see(whole(1.0, [reading(1, 1.0, {"/a": 5, "/b": 60})]))
    assert {(): 1.0} == scene.series("kafka_throttle_stop_line_reached")
    volume = "kafka_throttle_volume"
    assert {("1", "/a"): 1.0, ("1", "/b"): 0.0} == scene.series(f"{volume}_stop_line_violated")
    assert {("1", "/a"): 5.0, ("1", "/b"): 5.0} == scene.series(f"{volume}_stop_line_bytes")
    scene.board.set_override(Override(1.0, "by hand", 0.0, 60.0))
    assert {(): 0.0} == scene.series("kafka_throttle_stop_line_reached")


def test_without_a_stop_line_volumes_have_no_series_of_it() -> None:
    """0 would say that nothing is near it."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 0})]))
    for name in ("stop_line_violated", "stop_line_bytes"):
        assert {} == scene.series(f"kafka_throttle_volume_{name}")
    assert {(): 0.0} == scene.series("kafka_throttle_stop_line_reached")


def test_a_rate_that_is_not_known_has_no_series() -> None:
    """0 would say that it does not fill."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60})]))
    assert {} == scene.series("kafka_throttle_volume_fill_bytes_per_second")


def test_offline_log_dirs() -> None:
    """Offline is 0, also for one that was never read, which has no sizes; both are log dirs."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 61})]))
    scene.see(whole(1.0, [reading(1, 1.0, {"/a": 60})]))
    scene.see(whole(2.0, [reading(1, 2.0, offline=["/a", "/never"])]))
    assert scene.series("kafka_throttle_volume_online") == {("1", "/a"): 0.0, ("1", "/never"): 0.0}
    assert scene.series("kafka_throttle_volume_available_bytes") == {("1", "/a"): 60.0}
    assert {} == scene.series("kafka_throttle_volume_fill_bytes_per_second")
    assert scene.series("kafka_throttle_active_log_dirs") == {(): 2.0}


def test_a_volume_that_fills_although_producers_are_throttled() -> None:
    """It alone has a series, once two readings came after the throttle took effect."""
    scene = Scene()
    name = "kafka_throttle_fill_while_throttled_bytes_per_second"
    for at, left in ((0.0, 10), (6.0, 10), (12.0, 4)):
        assert {} == scene.series(name)
        scene.see(whole(at, [reading(1, at, {"/a": left, "/b": 60})]))
    assert {("1", "/a"): 1.0} == scene.series(name)
    scene.see(whole(18.0, [reading(1, 18.0, {"/a": 60, "/b": 60})]))
    assert {} == scene.series(name)


def test_series_of_what_is_gone_disappear() -> None:
    """A log dir is no longer reported, and a broker left."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60, "/b": 60}), reading(2, 0.0, {"/a": 60})]))
    scene.see(whole(1.0, [reading(1, 1.0, {"/a": 60})]))
    for name in ("total_bytes", "available_bytes", "limit_violated", "online"):
        assert {("1", "/a")} == set(scene.series(f"kafka_throttle_volume_{name}"))


def test_a_log_dir_that_was_gone_and_is_offline() -> None:
    """A scrape before does not hide that it is reported again."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60, "/b": 60})]))
    assert 2 == len(scene.series("kafka_throttle_volume_online"))
    scene.see(whole(1.0, [reading(1, 1.0, {"/a": 60})]))
    scene.see(whole(2.0, [reading(1, 2.0, {"/a": 60}, offline=["/b"])]))
    assert scene.series("kafka_throttle_volume_online") == {("1", "/a"): 1.0, ("1", "/b"): 0.0}


def test_a_fenced_broker_counts_by_its_violation_alone() -> None:
    """Its violating volume is shown, but it is neither active nor are its log dirs."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 5, "/b": 60}), reading(2, 0.0, {"/a": 60})]))
    scene.see(whole(1.0, [reading(2, 1.0, {"/a": 60})], fenced=[1]))
    assert scene.series("kafka_throttle_volume_limit_violated") == {
        ("1", "/a"): 1.0,
        ("2", "/a"): 0.0,
    }
    assert scene.series("kafka_throttle_active_brokers") == {(): 1.0}
    assert scene.series("kafka_throttle_active_log_dirs") == {(): 1.0}


def test_the_tally() -> None:
    """Counters and the last success are the board's, the time by the wall."""
    scene = Scene()
    tally = scene.board.tally
    tally.fallback_applied, tally.limit_violated, tally.succeeded_at = 2, 60, 70.0
    tally.failures[FailureKind.TLS] = 3
    assert scene.series("kafka_throttle_fallback_applied_total") == {(): 2.0}
    assert scene.series("kafka_throttle_limit_violated_total") == {(): 60.0}
    assert scene.series("kafka_throttle_last_success_timestamp_seconds") == {(): 1070.0}
    assert 3.0 == scene.series("kafka_throttle_poll_failures_total")["tls",]


@pytest.mark.parametrize("disabled", [True, False])
def test_the_source_in_force(disabled: bool) -> None:
    """Its value is 1, that of the others 0."""
    scene = Scene(disabled=disabled)
    override = Override(0.25, "because", 0.0, 10.0)
    scene.board.set_override(override)
    series = scene.series("kafka_throttle_source")
    assert [("disabled",) if disabled else ("override",)] == [key for key in series if series[key]]
    assert {(): 1.0 if disabled else 0.25} == scene.series("kafka_throttle_factor")


def test_seconds_to_full() -> None:
    """They run down between polls, to 0; +Inf while none fills or is seen."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60})]))
    assert {(): math.inf} == scene.series("kafka_throttle_seconds_to_full")
    scene.see(whole(10.0, [reading(1, 10.0, {"/a": 50})]))
    left = []
    for scene.clock.now in (12.5, 61.0, 310.5):
        left.append(scene.series("kafka_throttle_seconds_to_full")[()])
    assert [47.5, 0.0, math.inf] == left


def test_readers() -> None:
    """They are the brokers heard in the last 10 minutes, and those of them in an emergency."""
    scene = Scene()
    names = ("kafka_throttle_readers", "kafka_throttle_readers_in_emergency")
    counts = []
    scene.board.readers.record(Report(1, emergency=True, throttled_clients=3), 1, 0.0)
    scene.board.readers.record(Report(2, emergency=False, throttled_clients=3), 1, 1.0)
    for scene.clock.now in (600.0, 601.0, 602.0):
        counts.append([scene.series(name)[()] for name in names])
    assert [[2.0, 1.0], [1.0, 0.0], [0.0, 0.0]] == counts


def test_poll_durations() -> None:
    """The poller observes them, in seconds, with the deadline as the last bucket."""
    scene = Scene()
    scene.registry.poll_duration.observe(0.3)
    buckets = scene.series("kafka_throttle_poll_duration_seconds_bucket")
    assert (0.0, 1.0, 1.0) == (buckets["0.25",], buckets["0.5",], buckets["10.0",])


def test_openmetrics_has_the_units() -> None:
    """Each metric that has one has it, the library's too; the library's own parser takes it."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60})]))
    encode, _ = choose_encoder("application/openmetrics-text; version=1.0.0")
    text = encode(scene.registry).decode()
    lines = text.splitlines()
    units = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# UNIT ")}
    types = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    expected = {
        "process_cpu_seconds": "seconds",
        "kafka_throttle_poll_duration_seconds": "seconds",
        "kafka_throttle_volume_total_bytes": "bytes",
        "kafka_throttle_volume_fill_bytes_per_second": "bytes_per_second",
    }
    assert expected == {name: units.get(name) for name in expected}
    ends = ("_seconds", "_bytes", "_bytes_per_second")
    assert set(units) == {name for name in types if name.endswith(ends)}
    # The library's strict parser has no annotations.
    families = openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    assert set(units) <= {family.name for family in families}


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
def test_no_series_has_the_creation_time_of_a_counter(accept: str) -> None:
    """The library's ``_created`` would be one more series for each, which nobody asked for."""
    encode, _ = choose_encoder(accept)
    text = encode(Scene().registry).decode()
    assert "kafka_throttle_poll_duration_seconds_count 0.0" in text
    assert "_created" not in text


def test_a_log_dir_with_any_name() -> None:
    """Quotes, backslashes and line ends in a path are escaped."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {'/a"b\\c\nd': 60})]))
    assert {("1", '/a"b\\c\nd')} == set(scene.series("kafka_throttle_volume_online"))


def test_two_sidecars_in_a_process() -> None:
    """Registries are injected: nothing is global."""
    first, second = Scene(), Scene()
    first.registry.poll_duration.observe(1.0)
    assert {(): 0.0} == second.series("kafka_throttle_poll_duration_seconds_count")


def test_promtool_finds_nothing() -> None:
    """Names, units, types and help are as Prometheus has them, with and without volumes."""
    assert PROMTOOL, "promtool is missing: apt-get install -y prometheus"
    scene = Scene()
    for _ in range(2):
        done = subprocess.run(
            [PROMTOOL, "check", "metrics"],
            input=scene.scrape(),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
        scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60})]))
        scene.see(whole(1.0, [reading(1, 1.0, {"/a": 50})]))
