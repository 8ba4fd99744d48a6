"""What a line has besides, for the APIs that only the pipeline reads."""

import pytest

from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.requestlog.produce_size import Produce, ProducePartition, ProduceTopic
from sidecar.requestlog.rejected import Rejected, RejectedKind
from sidecar.requestlog.request_detail import TopicChange, TopicChanges
from sidecar.requestlog.wire import InitProducerIdAnswer
from tests.sidecar.requestlog.lines import BY_HAND, REAL, parsed_line, read
from usage_pipeline.kernels.line_detail import Detail, QuotaChange, QuotaChanges, detail


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (
            0,
            Produce(
                -1,
                (ProduceTopic((ProducePartition(3, 16412), ProducePartition(7, 9120)), "orders"),),
            ),
        ),
        (1, Produce(0, (ProduceTopic((ProducePartition(0, 812),), "metrics"),))),
        (2, None),
        (3, InitProducerIdAnswer(1000001, 0)),
        (5, TopicChanges((TopicChange("invoices", "", 24, 89),), validate_only=False)),
        (
            7,
            QuotaChanges(
                (
                    QuotaChange(Entity("alice", DEFAULT), "producer_byte_rate", 10_485_760.0, 0),
                    QuotaChange(Entity("alice", DEFAULT), "request_percentage", None, 0),
                ),
                validate_only=False,
            ),
        ),
    ],
)
def test_every_api_that_matters(number: int, expected: Detail | None) -> None:
    """There is one line by hand of each; the daemon's decoder reads those that it shares."""
    assert expected == detail(read(BY_HAND[number]))


def test_a_real_brokers_produce() -> None:
    """It is a 4.3.1 broker's."""
    expected = Produce(-1, (ProduceTopic((ProducePartition(1, 33358),), "t1"),))
    assert expected == detail(read(REAL[2]))


def test_topics_by_id() -> None:
    """From version 13 on a PRODUCE has topic ids instead of names."""
    topics = [{"topicId": "R0Q", "partitionData": [{"index": 0, "recordsSizeInBytes": 5}]}]
    produce = _detail(0, {"acks": 1, "topicData": topics}, "", version=13)
    expected = Produce(1, (ProduceTopic((ProducePartition(0, 5),), topic_id="R0Q"),))
    assert expected == produce


@pytest.mark.parametrize("response", ["", None])
def test_without_an_answer(response: str | None) -> None:
    """The request is whole; its result is None."""
    op = {"key": "connection_creation_rate", "value": 2, "remove": False}
    entry = {"entity": [{"entityType": "ip", "entityName": "10.0.0.1"}], "ops": [op]}
    expected = QuotaChanges(
        (QuotaChange(Entity(ip="10.0.0.1"), "connection_creation_rate", 2.0, None),),
        validate_only=True,
    )
    assert expected == _detail(49, {"entries": [entry], "validateOnly": True}, response)


_NO_KIND = {"entity": [{"entityType": "secret", "entityName": ""}], "ops": []}
_NO_NUMBER = {
    "entity": [{"entityType": "user", "entityName": ""}],
    "ops": [{"key": "k", "value": "secret", "remove": False}],
}


@pytest.mark.parametrize(
    ("api_key", "request_body", "reason"),
    [
        (0, "", "Expected `object`"),
        (0, {"acks": "secret", "topicData": []}, "acks"),
        (
            49,
            {"entries": [{"entity": [], "ops": _NO_NUMBER["ops"]}], "validateOnly": False},
            "not a number",
        ),
        (49, {"entries": [_NO_KIND], "validateOnly": False}, "unknown kind"),
        (49, {"entries": [_NO_NUMBER], "validateOnly": False}, "not a number"),
    ],
)
def test_what_does_not_fit_is_a_value(api_key: int, request_body: object, reason: str) -> None:
    """A request of another form is reported as such, without its text."""
    rejected = _detail(api_key, request_body, "")
    assert isinstance(rejected, Rejected)
    assert RejectedKind.UNEXPECTED == rejected.kind
    assert reason in rejected.message
    assert "secret" not in rejected.message


def _detail(
    api_key: int, request: object, response: object, *, version: int = 0
) -> Detail | Rejected | None:
    return detail(parsed_line(api_key, request=request, response=response, version=version))
