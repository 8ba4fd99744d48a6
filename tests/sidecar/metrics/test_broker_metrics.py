"""Which brokers are seen, and whose callbacks follow, one series a broker."""

from sidecar.metrics.broker_metrics import broker_metrics
from sidecar.throttle.readers import Refusals, Report, Reserve
from tests.sidecar.metrics.scene import Scene
from tests.sidecar.throttle.build import reading, whole


def test_the_metrics_are_there_before_any_broker_is() -> None:
    """Each has its name, without a series."""
    families = list(broker_metrics(Scene().board))
    names = {
        "broker_active",
        "broker_failing",
        "reader_up_to_date",
        "reader_faulty",
        "reader_refusals_logged",
        "reader_refused_requests",
        "reader_reserve_bytes",
    }
    assert {f"kafka_throttle_{name}" for name in names} == {each.name for each in families}
    assert [[]] * 7 == [family.samples for family in families]


def test_brokers_that_are_active_fenced_silent_and_gone() -> None:
    """A fenced one is not active, one that is gone has no series, only active ones can fail."""
    scene = Scene()
    everyone = [reading(number, 0.0, {"/a": 60}) for number in (1, 2, 3, 4)]
    scene.see(whole(0.0, everyone))
    assert dict.fromkeys("1234", 1.0) == scene.by_broker("broker_active")
    assert dict.fromkeys("1234", 0.0) == scene.by_broker("broker_failing")
    scene.see(whole(1.0, [reading(1, 1.0, {"/a": 60})], silent=[2], fenced=[3]))
    assert {"1": 1.0, "2": 1.0, "3": 0.0} == scene.by_broker("broker_active")
    assert {"1": 0.0, "2": 1.0} == scene.by_broker("broker_failing")


def test_a_full_broker_that_left_is_not_active() -> None:
    """An old cluster does not list it any more, its volume still counts."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60}), reading(2, 0.0, {"/a": 5})], fenced=None))
    scene.see(whole(1.0, [reading(1, 1.0, {"/a": 60})], fenced=None))
    assert {"1": 1.0, "2": 0.0} == scene.by_broker("broker_active")
    assert {"1": 0.0} == scene.by_broker("broker_failing")


def test_log_dirs_are_labels_only_of_brokers_in_the_cluster() -> None:
    """Anyone can claim to be a broker; one that starts from its reserve may still be fenced."""
    scene = Scene()
    scene.see(whole(0.0, [reading(1, 0.0, {"/a": 60})], fenced=[2]))
    for broker_id in (1, 2, 3):
        report = Report(broker_id, False, 0, reserves=(Reserve("/a", 8),))
        scene.board.readers.record(report, None, 0.0)
    assert {("1", "/a"), ("2", "/a")} == set(scene.series("kafka_throttle_reader_reserve_bytes"))


def test_callbacks_that_follow_and_that_do_not() -> None:
    """One waits, one has an older decision, one fell silent; 10 minutes later it is forgotten."""
    scene = Scene()
    heard = scene.board.readers.record
    heard(Report(1, emergency=False, throttled_clients=0), 1, 0.0).waiting += 1
    heard(Report(2, emergency=False, throttled_clients=0), None, 0.0)
    refusals = Refusals(new_connection=7, release=2, logged=True)
    heard(Report(3, emergency=False, throttled_clients=0, fault="error", refusals=refusals), 1, 0.0)
    reserves = (Reserve("/a", 8), Reserve("/b", 0))
    heard(Report(2, emergency=False, throttled_clients=0, reserves=reserves), None, 0.0)
    assert {"/a": 8, "/b": 0} == {
        each.labels["log_dir"]: each.value
        for family in broker_metrics(scene.board)
        for each in family.samples
        if each.name == "kafka_throttle_reader_reserve_bytes"
    }
    assert {"1": 0.0, "2": 0.0, "3": 1.0} == scene.by_broker("reader_faulty")
    assert {"new_connection": 7, "stop_line": 0, "release": 2} == {
        each.labels["reason"]: each.value
        for family in broker_metrics(scene.board)
        for each in family.samples
        if each.name == "kafka_throttle_reader_refused_requests_total"
    }
    assert {"3": 1.0} == scene.by_broker("reader_refusals_logged")
    assert {"1": 1.0, "2": 0.0, "3": 1.0} == scene.by_broker("reader_up_to_date")
    scene.clock.now = 11.0
    assert {"1": 1.0, "2": 0.0, "3": 0.0} == scene.by_broker("reader_up_to_date")
    scene.clock.now = 601.0
    assert {} == scene.by_broker("reader_up_to_date")
