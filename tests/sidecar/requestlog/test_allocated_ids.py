"""Which producer id was allocated to which user."""

from typing import Any

import pytest

from sidecar.requestlog.allocated_ids import ProducerIdAllocated, producer_id
from tests.sidecar.requestlog.lines import BY_HAND, REAL, parsed_line, read


def test_events_in_the_order_of_the_lines() -> None:
    """Only answers with an id are events: two of 20 lines."""
    expected = [ProducerIdAllocated("ANONYMOUS", 0), ProducerIdAllocated("alice", 1000001)]
    assert expected == list(filter(None, map(producer_id, map(read, REAL + BY_HAND))))


@pytest.mark.parametrize(
    "response",
    [
        {"errorCode": 14, "producerId": 5, "producerEpoch": 0},
        {"errorCode": 0, "producerId": -1, "producerEpoch": -1},
        {"errorCode": 0, "producerId": "5", "producerEpoch": 0},
        "",
        None,
    ],
)
def test_no_id_is_no_event(response: Any) -> None:
    """Errors, -1, a damaged answer and a missing one are no events."""
    assert producer_id(parsed_line(22, response=response)) is None
