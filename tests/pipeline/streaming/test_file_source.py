"""Files of a stream."""

import pytest

from sidecar.pipeline.ingest.paths import DEFAULT_PATTERNS, RequestLogsError
from sidecar.pipeline.streaming.file_source import is_of_stream


@pytest.mark.parametrize("end", [".1", ".12.gz"])
def test_a_name_that_is_used_again_is_refused(end: str) -> None:
    """Spark reads a name once, and would leave out every later file."""
    with pytest.raises(RequestLogsError, match="name files by their date"):
        is_of_stream(f"/logs/broker-3/kafka-request.log{end}", DEFAULT_PATTERNS, None)


@pytest.mark.parametrize("end", [".2026-11-20-10", ".2026-11-20-10.gz", ".20261120", ""])
def test_a_name_with_a_date_is_not(end: str) -> None:
    """Kafka's log4j configurations have the hour behind the name."""
    assert is_of_stream(f"/logs/broker-3/kafka-request.log{end}", DEFAULT_PATTERNS, None)
