"""Request logs of any length, with steady times."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
"""Of the logs."""


def line(at_ms: int, number: int = 0, *, user: str = "alice", send_ms: float = 0.0) -> bytes:
    """Returns a PRODUCE that was answered so long after ``START``."""
    when = START + timedelta(milliseconds=at_ms)
    body = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": 0,
            "requestApiVersion": 11,
            "correlationId": number,
            "clientId": "etl",
            "requestApiKeyName": "PRODUCE",
        },
        "request": {
            "transactionalId": None,
            "acks": -1,
            "timeoutMs": 30000,
            "topicData": [
                {"name": "t1", "partitionData": [{"index": 0, "recordsSizeInBytes": 1000}]}
            ],
        },
        "response": {"responses": [], "throttleTimeMs": 0},
        "connection": "10.0.1.1:9093-10.1.3.7:41234-2-117",
        "totalTimeMs": 3.5,
        "requestQueueTimeMs": 0.0,
        "localTimeMs": 0.25,
        "remoteTimeMs": 0.0,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.0,
        "sendTimeMs": send_ms,
        "securityProtocol": "SASL_SSL",
        "principal": f"User:{user}",
        "listener": "CLIENT",
    }
    stamp = f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03}"
    text = json.dumps(body, separators=(",", ":"))
    return f"[{stamp}] DEBUG Completed request:{text} (kafka.request.logger)\n".encode()


def lines(
    count: int, *, first: int = 0, step_ms: int = 100, from_ms: int = 0, user: str = "alice"
) -> bytes:
    """Returns lines at steady times; each has a number of its own."""
    return b"".join(
        line(from_ms + number * step_ms, number, user=user)
        for number in range(first, first + count)
    )


def write(folder: Path, broker: int, name: str, text: bytes) -> Path:
    """Writes a log of a broker that was rotated."""
    path = folder / f"broker-{broker}" / f"kafka-request.log.{name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return path


def pack(path: Path) -> Path:
    """Packs as gzip does: the file is another one, with another name."""
    target = path.with_name(f"{path.name}.gz")
    target.write_bytes(gzip.compress(path.read_bytes(), 1))
    path.unlink()
    return target
