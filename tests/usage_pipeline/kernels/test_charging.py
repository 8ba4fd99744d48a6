"""What requests are charged with is what the daemon charges, line by line."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.requestlog.line import Line, parse
from tests.sidecar.requestlog.lines import BY_HAND, REAL
from tests.usage_pipeline.charged_lines import used_of
from tests.usage_pipeline.kernels.requests import requests
from tests.usage_pipeline.request_lines import lines_as_written, made_lines
from usage_pipeline.ingest.records import parse_block
from usage_pipeline.ingest.rows import Row, row
from usage_pipeline.kernels.charging import Charged, charged, charged_with_mutations
from usage_pipeline.tables.schemas import QUOTA_TYPES

UTC = ZoneInfo("UTC")
MOST = 1 << 52
REFUSED = {"topic": "a", "topic_id": "", "partitions": 12, "error": 89}


def charges(found: Charged) -> list[tuple[int, int, int, bool]]:
    """Returns row, kind, amount and whether it is known, in the rows' order."""
    arrays = (found.row, found.kind, found.amount, found.known)
    return sorted(zip(*(array.tolist() for array in arrays), strict=True))


# A request that is written twice is read once (tests/sidecar/requestlog/test_layout.py).
@pytest.mark.slow
@given(
    lines=st.lists(
        made_lines() | lines_as_written(),
        min_size=1,
        max_size=6,
        unique_by=lambda line: line.partition(b"{")[2],
    )
)
@example(lines=[*REAL, *BY_HAND])
def test_requests_are_charged_with_what_the_daemon_charges(lines: list[bytes]) -> None:
    """Amounts agree for lines of all APIs, and whether they are known; too large ones are cut."""
    block = b"\n".join(lines)
    batch = parse_block(block, broker=3, zone=UTC, src_file="3.log", offset=0).rows
    parsed = [line for line in map(parse, lines) if isinstance(line, Line)]
    read = [line for line in parsed if isinstance(row(line, UTC), Row)]
    assert [
        (
            at,
            QUOTA_TYPES.index(quota_type),
            min(amount, 1 << 52),
            quota_type == "request" or not is_short,
        )
        for at, line in enumerate(read)
        for quota_type, amount, is_short in used_of(line)
    ] == charges(charged_with_mutations(batch))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"api": "0"}, [(0, 100, True)]),
        ({"api": "FETCH"}, [(1, 100, True)]),
        ({"api": "FETCH", "is_follower": True}, []),
        ({"api": "SHARE_FETCH", "bytes_known": None, "quota_bytes": None}, [(1, 0, False)]),
        ({"api": "1", "bytes_known": False, "quota_bytes": None}, [(1, 0, False)]),
        ({"api": "METADATA", "bytes_known": None, "quota_bytes": None}, []),
        ({"api": "METADATA", "exempt": False}, [(2, 258_000, True)]),
        ({"api": "METADATA", "exempt": False, "local_ms": 1e300}, [(2, MOST, True)]),
        ({"api": "INIT_PRODUCER_ID", "producer_id": 4000, "bytes_known": None}, [(4, 1, True)]),
    ],
)
def test_what_a_request_is_charged_with(
    fields: dict[str, Any], expected: list[tuple[int, int, bool]]
) -> None:
    """The API decides; what no line has is charged with an unknown amount."""
    found = charged(requests(fields))
    assert expected == list(
        zip(found.kind.tolist(), found.amount.tolist(), found.known.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"mutations": 12, "mutations_known": True}, [(3, 12, True)]),
        ({"api": "19", "mutations": 12, "mutations_known": True}, [(3, 12, True)]),
        ({"mutations": 0, "mutations_known": True, "topic_changes": [REFUSED]}, [(3, 0, False)]),
        ({"mutations": None, "mutations_known": False}, [(3, 0, False)]),
        ({"is_forwarded": False, "mutations": 12, "mutations_known": True}, []),
        ({"api": "ALTER_CLIENT_QUOTAS"}, []),
    ],
)
def test_mutations_are_what_a_controllers_line_says(
    fields: dict[str, Any], expected: list[tuple[int, int, bool]]
) -> None:
    """Refused ones were asked for, and no line counts them; brokers' lines are the same request."""
    usual = {"api": "CREATE_TOPICS", "is_forwarded": True, "bytes_known": None}
    batch = requests({**usual, **fields}, {"quota_bytes": 7})
    found = charged_with_mutations(batch)
    charges = zip(found.kind.tolist(), found.amount.tolist(), found.known.tolist(), strict=True)
    assert [(0, 7, True), *expected] == list(charges)
    assert [1, *[0] * len(expected)] == found.row.tolist()
