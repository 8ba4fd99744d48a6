"""Which client used what: a fold with bounded memory."""

from dataclasses import fields
from typing import Any

import pytest

from sidecar.requestlog.client_usage import ClientUsage, Usage
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.rejected import RejectedKind
from sidecar.requestlog.request_detail import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from tests.sidecar.requestlog.lines import BY_HAND, parsed_line, topics_line


def test_the_lines_by_hand() -> None:
    """Every API has time, exempt time and throttle times; forwarded ones have only mutations."""
    usage = Usage()
    for text in BY_HAND:
        usage.record(parse(text))
    clients = usage.clients()
    assert pytest.approx(0.258 + 0.359) == clients["alice", "orders-writer-3"].request_ms
    assert ClientUsage(requests=1, exempt_ms=0.21) == clients["edge", "telemetry"]
    assert ClientUsage(requests=1, request_ms=0.473) == clients["bob", "orders-etl-0"]
    alice = clients["alice", "adminclient-9"]
    assert (0, 0.0) == (alice.requests, alice.request_ms)
    # Created with 12, not grown to 24, so deleted with 12.
    assert (24, 12, 0) == (alice.mutations, alice.mutations_refused, alice.mutations_unknown)
    assert ClientUsage() == clients["admin", "adminclient-9"]


def test_throttle_times() -> None:
    """Requests are counted, with sum and longest; a forwarded line's is the broker's, too."""
    usage = Usage()
    for throttle_ms in (0, 198, 20):
        usage.record(parsed_line(0, throttleTimeMs=throttle_ms))
    usage.record(parsed_line(19, throttleTimeMs=500, isForwarded=True))
    alice = usage.clients()["alice", "etl"]
    assert (2, 218, 198) == (alice.throttled, alice.throttle_ms, alice.longest_throttle_ms)


def test_mutations_are_the_controllers() -> None:
    """The broker's line of the same request is not counted again."""
    usage = Usage()
    for forwarded in (False, True):
        usage.record(_create("t", 3, isForwarded=forwarded))
    assert 3 == usage.clients()["alice", "etl"].mutations


def test_sizes_come_from_earlier_lines() -> None:
    """Growing and deleting is counted when the size was known, and reported when it wasn't."""
    usage = Usage()
    _learn(usage, {"old": 8})
    usage.record(_grow("old", 10))
    usage.record(_delete("old"))
    assert (12, 0) == _mutations(usage)
    usage.record(_delete("old"))
    usage.record(_grow("new", 4))
    assert (12, 2) == _mutations(usage)
    usage.record(_delete("new"))
    assert (16, 2) == _mutations(usage)


def test_validate_only_is_charged_and_changes_nothing() -> None:
    """KRaft charges it, against KIP-599's text; the topic is as large as before."""
    usage = Usage()
    _learn(usage, {"t": 1})
    usage.record(_grow("t", 5, validate_only=True))
    usage.record(_grow("t", 3))
    assert (6, 0) == _mutations(usage)


@pytest.mark.parametrize(
    ("error", "expected"), [(0, (3, 0)), (89, (0, 3)), (36, (0, 0)), (41, (0, 0))]
)
def test_what_failed_is_not_charged(error: int, expected: tuple[int, int]) -> None:
    """Only the quota's own refusal is reported; other errors cost nothing."""
    usage = Usage()
    usage.record(_create("t", 3, error=error))
    alice = usage.clients()["alice", "etl"]
    assert expected == (alice.mutations, alice.mutations_refused)


def test_a_refused_creation_has_no_size() -> None:
    """What was not created has no partitions to delete."""
    usage = Usage()
    usage.record(_create("t", 3, error=89))
    usage.record(_delete("t"))
    assert (0, 1) == _mutations(usage)


def test_the_least_recently_seen_makes_room() -> None:
    """Active clients stay; the sums of the others are added up together, and none is lost."""
    usage = Usage(most_clients=2)
    for client in ("a", "b", "a", "c", "a", "d"):
        usage.record(parsed_line(0, client_id=client, localTimeMs=2.0, throttleTimeMs=7))
    assert {("alice", "a"), ("alice", "d")} == set(usage.clients())
    assert 2 == usage.evicted.requests
    assert (4.0, 14, 7) == (
        usage.evicted.request_ms,
        usage.evicted.throttle_ms,
        usage.evicted.longest_throttle_ms,
    )
    assert 6 == usage.evicted.requests + sum(one.requests for one in usage.clients().values())


def test_no_sum_is_forgotten_when_adding() -> None:
    """Every field is added; of the longest throttle times the longer stays."""
    names = [field.name for field in fields(ClientUsage)]
    usage = ClientUsage(**dict.fromkeys(names, 2))
    usage.add(ClientUsage(**dict.fromkeys(names, 3)))
    expected = dict.fromkeys(names, 5) | {"longest_throttle_ms": 3}
    assert ClientUsage(**expected) == usage


def test_names_are_cut() -> None:
    """A client-id may have 32 kB; names that are equal up to the bound are counted together."""
    usage = Usage(longest_name=4)
    for client in ("abcdef", "abcdgh"):
        usage.record(parsed_line(0, client_id=client, principal="User:alice"))
    assert {("alic", "abcd"): 2} == {
        client: one.requests for client, one in usage.clients().items()
    }


def test_topics_names_are_cut() -> None:
    """A broker allows 249 characters, but a line may have more."""
    usage = Usage(longest_name=4)
    _learn(usage, {"abcdef": 3})
    usage.record(_delete("abcdgh"))
    alice = usage.clients()["alic", "etl"]
    assert (3, 0) == (alice.mutations, alice.mutations_unknown)


def test_growing_to_less_is_no_mutation() -> None:
    """Without an answer the refusal is unknown; the mutation subtracts nothing from the sum."""
    usage = Usage()
    _learn(usage, {"t": 5})
    usage.record(_grow("t", 2, response=""))
    assert (0, 0) == _mutations(usage)


def test_sizes_are_bounded() -> None:
    """The topic whose size was recorded first is forgotten first."""
    usage = Usage(most_topics=2)
    _learn(usage, {"a": 1, "b": 2})
    _learn(usage, {"a": 1, "c": 4})
    for topic in ("a", "b", "c"):
        usage.record(_delete(topic))
    assert (5, 1) == _mutations(usage)


def test_what_could_not_be_read_is_counted() -> None:
    """Counts are by kind, from zero; a line whose topics can't be read is counted apart."""
    usage = Usage()
    assert dict.fromkeys(RejectedKind, 0) == usage.rejected
    usage.record(parse(b"garbage"))
    usage.record(parse(BY_HAND[0][:-1]))
    usage.record(parse(BY_HAND[0][:-1]))
    usage.record(parsed_line(19, isForwarded=True, request={"topics": 7}))
    assert (1, 2) == (usage.rejected[RejectedKind.OTHER], usage.rejected[RejectedKind.TORN])
    assert 1 == usage.unread


def test_the_sums_returned_do_not_change() -> None:
    """They are as of when they were asked for."""
    usage = Usage()
    usage.record(parsed_line(0))
    before = usage.clients()
    usage.record(parsed_line(0))
    assert 1 == before["alice", "etl"].requests


def _learn(usage: Usage, sizes: dict[str, int]) -> None:
    """Topics that another user created."""
    for topic, partitions in sizes.items():
        usage.record(_create(topic, partitions, principal="User:admin"))


def _mutations(usage: Usage) -> tuple[int, int]:
    alice = usage.clients()["alice", "etl"]
    return alice.mutations, alice.mutations_unknown


def _create(topic: str, partitions: int, **more: Any) -> Line:
    return topics_line(CREATE_TOPICS, {"name": topic, "numPartitions": partitions}, **more)


def _grow(topic: str, total: int, **more: Any) -> Line:
    return topics_line(CREATE_PARTITIONS, {"name": topic, "count": total}, **more)


def _delete(topic: str) -> Line:
    return topics_line(DELETE_TOPICS, {"name": topic})
