"""Which producer id was allocated to which user."""

from typing import Any

import pytest

from sidecar.requestlog.allocated_ids import producer_id
from tests.sidecar.requestlog.lines import BY_HAND, REAL, parsed_line, read


def test_ids_in_the_order_of_the_lines() -> None:
    """Only answers with an id have one: two of 20 lines."""
    lines = [read(text) for text in REAL + BY_HAND]
    found = [(each.user, producer_id(each)) for each in lines]
    assert [("ANONYMOUS", 0), ("alice", 1000001)] == [each for each in found if each[1] is not None]


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
def test_there_may_be_no_id(response: Any) -> None:
    """Errors, -1, a damaged answer and a missing one have none."""
    assert producer_id(parsed_line(22, response=response)) is None
