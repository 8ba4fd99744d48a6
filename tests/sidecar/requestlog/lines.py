"""Lines for tests: those of a real broker and one by hand of every API that matters."""

import json
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from sidecar.requestlog.line import Line, parse

HERE: Final = Path(__file__).parent
LAYOUTS: Final = HERE / "layouts"
"""Logs as they are found in public, with made-up names and numbers."""
REAL: Final = tuple((HERE / "kafka-4.3.1.log").read_bytes().splitlines())
"""Of a broker 4.3.1 that was also the controller, with no principals and no quotas."""
BY_HAND: Final = tuple((HERE / "by-hand.log").read_bytes().splitlines())
"""One of every API that matters, with principals and throttle times."""

# Around the lengths at which an encoded length takes another byte.
LENGTHS = st.sampled_from([0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 2_097_151]) | st.integers(
    0, 300
)
NAMES = st.text(st.characters(codec="utf-8"), max_size=200)


def line(api_key: int, **fields: Any) -> bytes:
    """A line of alice's client-id etl; fields by Kafka's names replace its own."""
    time = fields.pop("time", "2026-11-20 10:00:00,000")
    body = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": api_key,
            "requestApiVersion": fields.pop("version", 0),
            "clientId": fields.pop("client_id", "etl"),
        },
        "request": "",
        "response": "",
        "localTimeMs": 1.0,
        "throttleTimeMs": 0,
        "principal": "User:alice",
        **fields,
    }
    text = json.dumps(body, separators=(",", ":"))
    return f"[{time}] DEBUG Completed request:{text} (kafka.request.logger)".encode()


def read(text: bytes) -> Line:
    """Parses a line, which must be readable."""
    parsed = parse(text)
    assert isinstance(parsed, Line), parsed
    return parsed


def parsed_line(api_key: int, **fields: Any) -> Line:
    """``line``, read."""
    return read(line(api_key, **fields))


def topics_line(
    api_key: int,
    *topics: dict[str, Any],
    error: int = 0,
    validate_only: bool = False,
    **fields: Any,
) -> Line:
    """A controller's line about topics; its answer has the same error for each."""
    answers = [{"name": each["name"], "errorCode": error} for each in topics]
    request = {"topics": topics, "validateOnly": validate_only}
    about = {"isForwarded": True, "request": request, "response": {"topics": answers}}
    return parsed_line(api_key, **{**about, **fields})
