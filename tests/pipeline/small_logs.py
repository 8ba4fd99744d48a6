"""Request logs of a few lines, that tests of the job write."""

import json
from pathlib import Path


def metadata(time: str, client_id: str = "etl", send_ms: float = 0.0) -> str:
    """The line of a consumer's METADATA that took a millisecond."""
    body = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": 3,
            "requestApiVersion": 12,
            "requestApiKeyName": "METADATA",
            "clientId": client_id,
        },
        "request": {},
        "response": {},
        "localTimeMs": 1.0,
        "sendTimeMs": send_ms,
        "principal": "User:alice",
    }
    text = json.dumps(body, separators=(",", ":"))
    return f"[{time}] DEBUG Completed request:{text} (kafka.request.logger)\n"


def log(root: Path, broker: int, *lines: str) -> None:
    """Writes a broker's log."""
    path = root / f"broker-{broker}" / "kafka-request.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
