"""Who wrote to which topic, by the request log: for how long that counts, and how much of it."""

from typing import Any

import msgspec
import pytest

from sidecar.client_quotas import writers as module
from sidecar.client_quotas.writers import BrokerWriters, LoggedRates, TopicWriters, Writer
from sidecar.client_quotas.written import WHOLE_S, Written
from sidecar.requestlog.line import Line
from sidecar.requestlog.produce_size import ProduceTopic
from sidecar.throttle.peak import PEAK_S
from tests.sidecar.requestlog.lines import parsed_line

POLL = parsed_line(35)
BEGAN = 1000.0
ID = "-vv8_f7_AAAAAAAAAAAAAA"


def produce(user: str, *topics: str, version: int = 11) -> Line:
    key = "topicId" if version >= 13 else "name"
    partitions = [{"index": 0, "recordsSizeInBytes": 100}]
    data = [{key: topic, "partitionData": partitions} for topic in topics]
    own: dict[str, Any] = {"request": {"acks": -1, "topicData": data}, "version": version}
    return parsed_line(0, principal=f"User:{user}", **own)


def logged(*lines: Line, seconds: float = WHOLE_S) -> Written:
    """A log with these lines at its beginning, and a poll in each second."""
    written = Written(writers=TopicWriters())
    for line in lines:
        written.count(line, BEGAN)
    for second in range(int(seconds) + 1):
        written.count(POLL, BEGAN + second)
    return written


def writers_at(written: Written, at: float) -> set[Writer]:
    assert written.writers is not None
    return set(written.writers.known(at))


def test_names_and_ids_are_kept_apart() -> None:
    """From version 13 on a line has ids. A topic may be called like an id."""
    written = logged(produce("alice", "a", "b"), produce("bob", ID, version=13), produce("bob", ID))
    expected = {("alice", "a", ""), ("alice", "b", ""), ("bob", "", ID), ("bob", ID, "")}
    assert {Writer(*each) for each in expected} == writers_at(written, BEGAN)


def test_a_writer_counts_for_a_quarter_of_an_hour() -> None:
    """And for no longer than twice that."""
    for shift in (0.0, 0.4 * PEAK_S, 0.9 * PEAK_S):
        written = logged(produce("first", "a"))
        wrote_at = BEGAN + shift
        written.count(produce("alice", "a"), wrote_at)
        alice = Writer("alice", "a", "")
        assert alice in writers_at(written, wrote_at + PEAK_S)
        assert alice not in writers_at(written, wrote_at + 2 * PEAK_S)


@pytest.mark.parametrize("missed", ["pairs", "bytes", "line"])
def test_a_log_with_a_gap_tells_not_all_for_a_minute(
    missed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many pairs, lost bytes, or a line that can't be read; what is known stays known."""
    monkeypatch.setattr(module, "MOST_PAIRS", 2)
    now = BEGAN + WHOLE_S
    written = logged(produce("alice", "a"))
    assert written.rates(now)
    if missed == "pairs":
        written.count(produce("bob", "a", "b", "c"), now)
    elif missed == "bytes":
        written.unread = lambda: (1, 0)
    else:
        written.count(parsed_line(0, request={"topicData": 7}), now)
    assert not written.rates(now)
    for second in range(int(WHOLE_S)):
        written.count(POLL, now + second)
    assert not written.rates(now + WHOLE_S - 1.0)
    assert written.rates(now + WHOLE_S)
    assert Writer("alice", "a", "") in writers_at(written, now)
    assert 2 >= len(writers_at(written, now))


def test_all_pairs_that_are_kept_fit_an_answer() -> None:
    """Other sidecars refuse a longer one, and then know nothing of this broker."""
    writers, name = TopicWriters(), "\u20ac" * 1000
    for shift in (0.0, PEAK_S):
        topics = [ProduceTopic((), f"{number}") for number in range(1000)]
        assert not writers.note(name, topics, BEGAN + shift)
    known = list(writers.known(BEGAN + PEAK_S))
    assert len(known) > 600
    rates = LoggedRates(1e9, 1e9, 1e9)
    assert len(msgspec.json.encode(BrokerWriters(1, "A" * 22, True, known, rates))) < 4 << 20
