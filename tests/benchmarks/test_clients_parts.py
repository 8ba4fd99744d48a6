"""Which clients run at once, and what a broker counts of each."""

from benchmarks.clients.clients import CLIENTS, Client
from benchmarks.clients.meters import Counts, of_clients, of_listeners
from benchmarks.clients.parts import LONG, SHORT
from tests.support.java import Bean


def _client(key: str, *, large: bool) -> Client:
    return Client(key, key, "go", key, has_large_requests=large)


A, B, C = (_client(key, large=key == "b") for key in "abc")


def test_in_a_short_throttle_each_has_a_broker() -> None:
    """As many at once as asked for; the last run has what is left."""
    assert [[[A], [B]], [[C]]] == SHORT.placed([A, B, C], 2)


def test_in_a_long_one_seven_run_at_once() -> None:
    """Those with large requests are on the second broker; a broker without clients is none."""
    assert [[[A, C], [B]]] == LONG.placed([A, B, C], 2)
    assert [[[B]]] == LONG.placed([B], 2)
    assert [[[A] * 6, [B]], [[C]]] == LONG.placed([*[A] * 6, B, C], 2)


def test_each_client_is_in_one_run() -> None:
    """That is so of both parts."""
    for part in (SHORT, LONG):
        found = [each for run in part.placed(CLIENTS, 2) for broker in run for each in broker]
        assert sorted(each.key for each in CLIENTS) == sorted(each.key for each in found)


def test_a_listener_s_counts_are_those_of_its_threads() -> None:
    """What belongs to no listener counts for none, and what a bean lacks is 0."""
    name = "kafka.server:type=socket-server-metrics,listener={},networkProcessor={}"
    both: Bean = {"incoming-byte-total": 700.0, "connection-creation-total": 2.0}
    found: dict[str, Bean] = {
        name.format("A", 0): both,
        name.format("A", 1): {"incoming-byte-total": 7.0, "connection-creation-total": None},
        name.format("B", 2): {"connection-creation-total": 1.0},
        "kafka.server:type=socket-server-metrics": {"incoming-byte-total": 9.0},
    }
    counts = Counts({"A": 707, "B": 0}, {"A": 2, "B": 1}, {"a": 5})
    assert counts == of_listeners(found, {"a": 5})


def test_refusals_are_of_client_ids() -> None:
    """Whoever used one, and none where nothing was refused."""
    assert {} == of_clients("")
    assert {"a b": 12, "": 1} == of_clients("ANONYMOUS/a%20b:9,bob/:1,alice/a%20b:3")
