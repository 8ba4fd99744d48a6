"""Which partitions of a PRODUCE were written."""

from typing import Any

import msgspec
import pytest

from sidecar.requestlog.appended import appended
from sidecar.requestlog.produce_size import Produce
from tests.sidecar.requestlog.lines import BY_HAND, REAL, read

TWO = {"partitionData": [{"index": 0, "recordsSizeInBytes": 5}, {"index": 1}]}


def left(response: object, **topic: str) -> list[int]:
    """The partitions that a request for two of a topic wrote to."""
    request = msgspec.convert({"acks": -1, "topicData": [{**topic, **TWO}]}, Produce)
    found = appended(request.topics, msgspec.Raw(msgspec.json.encode(response)))
    return [partition.index for each in found for partition in each.partition_data]


def answer(*errors: int, **topic: str) -> dict[str, Any]:
    """An answer with an error for each partition."""
    partitions = [{"index": index, "errorCode": error} for index, error in enumerate(errors)]
    return {"responses": [{**topic, "partitionResponses": partitions}], "throttleTimeMs": 0}


@pytest.mark.parametrize("topic", [{"name": "orders"}, {"topicId": "ID"}])
@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((0, 0), [0, 1]),
        # TOPIC_AUTHORIZATION_FAILED, NOT_ENOUGH_REPLICAS.
        ((29, 0), [1]),
        ((29, 19), []),
        # REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND: the leader has the records.
        ((7, 20), [0, 1]),
    ],
)
def test_refused_partitions_are_left_out(
    topic: dict[str, str], errors: tuple[int, ...], expected: list[int]
) -> None:
    """Those whose records the leader has appended stay, whatever else failed."""
    assert expected == left(answer(*errors, **topic), **topic)


@pytest.mark.parametrize("response", ["", None, 7, {"responses": 7}])
def test_without_an_answer_all_are_written(response: object) -> None:
    """acks=0 gets none."""
    assert [0, 1] == left(response, name="orders")


def test_logged_requests_were_written() -> None:
    """Those of a real broker, and one without an answer."""
    lines = [line for line in map(read, (*REAL, *BY_HAND)) if line.api_key == 0]
    assert len(lines) > 1
    for line in lines:
        topics = msgspec.json.decode(line.body.request, type=Produce).topics
        assert topics == appended(topics, line.body.response)
