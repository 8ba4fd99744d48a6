"""What requests were charged with by their lines, and when."""

from dataclasses import replace

import pytest

from sidecar.quotas.entities import QuotaKey
from sidecar.requestlog.exempt import PRODUCE
from sidecar.requestlog.line import Line
from sidecar.requestlog.mutation_counts import TopicSizes
from sidecar.requestlog.request_detail import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from tests.sidecar.requestlog.lines import BY_HAND, parsed_line, read, topics_line
from tests.support.charges import charges
from tests.support.prediction import Charge
from usage_pipeline.kernels.charge_times import charged_at_ms

WRITER, TELEMETRY, CONSUMER, _, CREATED, GROWN, DELETED, ALTERED = map(read, BY_HAND)
TEN_OCLOCK_MS = 1_795_168_800_000
"""2026-11-20 10:00:00."""


def test_a_produce_is_charged_with_its_size_and_time() -> None:
    """The time is the line's 10:00:00.123 less 0.063 and 0.144 ms: in the millisecond before."""
    at_ms = TEN_OCLOCK_MS + 122
    expected = (
        Charge(at_ms, QuotaKey.PRODUCE, "alice", "orders-writer-3", 25_591),
        Charge(at_ms, QuotaKey.REQUEST, "alice", "orders-writer-3", 0.0258),
    )
    charged = charges(WRITER, TopicSizes())
    assert 0 == charged.unknown
    assert list(expected) == [rounded(each) for each in charged.charges]


def test_without_acknowledgement_no_time_is_charged() -> None:
    """acks=0 is charged with bytes alone."""
    assert {QuotaKey.PRODUCE} == keys(TELEMETRY)


def test_the_controllers_line_is_charged_with_partitions() -> None:
    """Each topic is charged by itself, with handler time; the broker's line with time alone."""
    sizes = TopicSizes()
    found = [mutations(line, sizes) for line in (CREATED, GROWN, DELETED)]
    assert [[12], [12], [12]] == found
    own = parsed_line(CREATE_TOPICS, request={"topics": [{"name": "t", "numPartitions": 3}]})
    assert {QuotaKey.REQUEST} == keys(own)


@pytest.mark.parametrize(
    ("api_key", "since"), [(CREATE_TOPICS, 6), (CREATE_PARTITIONS, 3), (DELETE_TOPICS, 5)]
)
def test_newer_versions_are_strict(api_key: int, since: int) -> None:
    """A version is strict once it has the error code, as KIP-599 says."""
    for version in (since - 1, since):
        sizes = TopicSizes()
        sizes.mutations(topics_line(CREATE_TOPICS, {"name": "t", "numPartitions": 2}))
        line = parsed_line(
            api_key,
            version=version,
            isForwarded=True,
            request={"topics": [{"name": "t", "numPartitions": 3, "count": 3}]},
        )
        (first, *_) = charges(line, sizes).charges
        assert (QuotaKey.CONTROLLER_MUTATION, version >= since) == (first.key, first.strict)


def test_what_the_line_lacks_is_counted() -> None:
    """A deleted topic of unknown size and garbage are counted."""
    for line in (
        DELETED,
        parsed_line(PRODUCE, request={"acks": 1}),
        parsed_line(CREATE_TOPICS, isForwarded=True, request={"topics": 1}),
    ):
        charged = charges(line, TopicSizes())
        assert (1, [QuotaKey.REQUEST]) == (charged.unknown, [each.key for each in charged.charges])


def test_mutations_are_charged_before_they_are_committed() -> None:
    """They are at 10:00:01.001 less 0.054, 0.111 and 13.001 ms of waiting; the time is later."""
    mutation, request = charges(CREATED, TopicSizes()).charges
    assert (TEN_OCLOCK_MS + 1000 - 13, 13) == (mutation.at_ms, mutation.waited_ms)
    assert (TEN_OCLOCK_MS + 1000, 0) == (request.at_ms, request.waited_ms)


def test_the_time_before_the_answer_was_queued() -> None:
    """A long time in the response queue and on the wire is taken off."""
    slow = parsed_line(PRODUCE, responseQueueTimeMs=1500.0, sendTimeMs=500.25)
    assert TEN_OCLOCK_MS - 2001 == charged_at_ms(slow)


def keys(line: Line) -> set[QuotaKey]:
    return {each.key for each in charges(line, TopicSizes()).charges}


def mutations(line: Line, sizes: TopicSizes) -> list[float]:
    return [
        each.amount
        for each in charges(line, sizes).charges
        if each.key is QuotaKey.CONTROLLER_MUTATION
    ]


def rounded(charge: Charge) -> Charge:
    """Rounds to 12 digits, since percentages are rounded by floats."""
    return replace(charge, amount=round(charge.amount, 12))
