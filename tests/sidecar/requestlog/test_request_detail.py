"""What a line has besides, for the APIs that quotas are about."""

from typing import Any

import pytest

from sidecar.requestlog.rejected import Rejected, RejectedKind
from sidecar.requestlog.request_detail import (
    Detail,
    TopicChange,
    TopicChanges,
    detail,
)
from sidecar.requestlog.wire import InitProducerIdAnswer
from tests.sidecar.requestlog.lines import BY_HAND, REAL, parsed_line, read

_INVOICES_ID = "4L6g3nShT-eMCtK--X86sw"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (2, None),
        (3, InitProducerIdAnswer(1000001, 0)),
        (4, TopicChanges((TopicChange("invoices", _INVOICES_ID, 12, 0),), validate_only=False)),
        (5, TopicChanges((TopicChange("invoices", "", 24, 89),), validate_only=False)),
        (6, TopicChanges((TopicChange("invoices", _INVOICES_ID, None, 0),), validate_only=False)),
    ],
)
def test_every_api_that_matters(number: int, expected: Detail | None) -> None:
    """There is one line by hand of each."""
    assert expected == detail(read(BY_HAND[number]))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, InitProducerIdAnswer(-1, 14)),
        (1, InitProducerIdAnswer(0, 0)),
        (6, TopicChanges((TopicChange("t1", "", 3, 0),), validate_only=False)),
        (8, None),
    ],
)
def test_a_real_brokers_lines(number: int, expected: Detail | None) -> None:
    """These are a 4.3.1 broker's; where no id was allocated, the answer has error 14."""
    assert expected == detail(read(REAL[number]))


@pytest.mark.parametrize("response", ["", None])
@pytest.mark.parametrize(
    ("api_key", "request_body", "expected"),
    [
        (22, {}, InitProducerIdAnswer(-1, None)),
        (
            19,
            {"topics": [{"name": "t", "numPartitions": 3}], "validateOnly": True},
            TopicChanges((TopicChange("t", "", 3, None),), validate_only=True),
        ),
    ],
)
def test_without_an_answer(
    response: str | None, api_key: int, request_body: dict[str, Any], expected: Detail
) -> None:
    """The request is whole; its result is None."""
    assert expected == _detail(api_key, request_body, response)


@pytest.mark.parametrize(
    ("topic", "answer", "expected"),
    [
        ({"numPartitions": 3}, {}, 3),
        ({"numPartitions": 3}, {"numPartitions": 12}, 12),
        ({"numPartitions": -1}, {"numPartitions": 12}, 12),
        ({"numPartitions": -1}, {}, None),
        ({"numPartitions": -1}, {"numPartitions": -1}, None),
        ({"numPartitions": -1, "assignments": [{"partitionIndex": 0}, {}]}, {}, 2),
    ],
)
def test_partitions_of_a_new_topic(
    topic: dict[str, Any], answer: dict[str, Any], expected: int | None
) -> None:
    """The answer knows best, then the assignments, then the number; -1 is no number."""
    found = _detail(
        19,
        {"topics": [{"name": "t", **topic}]},
        {"topics": [{"name": "t", "errorCode": 0, **answer}]},
    )
    expected_changes = (TopicChange("t", "", expected, 0),)
    assert TopicChanges(expected_changes, validate_only=False) == found


def test_topics_and_answers_are_matched_by_name_or_id() -> None:
    """Answers come in any order; DELETE_TOPICS has names, or ids that the answer has names for."""
    by_name = _detail(
        20,
        {"topicNames": ["a", "b"]},
        {"responses": [{"name": "b", "errorCode": 3}, {"name": "a", "errorCode": 0}]},
    )
    expected = (TopicChange("a", "", None, 0), TopicChange("b", "", None, 3))
    assert TopicChanges(expected, validate_only=False) == by_name

    by_id = _detail(
        20,
        {"topics": [{"name": None, "topicId": each} for each in ("A", "B", "C")]},
        {
            "responses": [
                {"name": None, "topicId": "B", "errorCode": 100},
                {"name": "a", "topicId": "A", "errorCode": 0},
            ]
        },
    )
    expected_by_id = (
        TopicChange("a", "A", None, 0),
        TopicChange("", "B", None, 100),
        TopicChange("", "C", None, None),
    )
    assert TopicChanges(expected_by_id, validate_only=False) == by_id


@pytest.mark.parametrize(
    ("request_body", "reason"), [("", "Expected `object`"), ({"topics": 3}, "topics")]
)
def test_what_does_not_fit_is_a_value(request_body: object, reason: str) -> None:
    """A request of another form is reported as such."""
    rejected = _detail(19, request_body, "")
    assert isinstance(rejected, Rejected)
    assert RejectedKind.UNEXPECTED == rejected.kind
    assert reason in rejected.message


def test_a_name_that_is_not_utf_8() -> None:
    """The line can be read, and the request in it is reported."""
    line = BY_HAND[4].replace(b"invoices", b"inv\xff")
    expected = Rejected(RejectedKind.UNEXPECTED, "not UTF-8")
    assert expected == detail(read(line))


def _detail(api_key: int, request: object, response: object) -> Detail | Rejected | None:
    return detail(parsed_line(api_key, request=request, response=response))
