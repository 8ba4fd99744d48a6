"""Request logs and volume histories of a few lines, that tests of the job write."""

import json
from pathlib import Path

from tests.sidecar.requestlog.lines import line


def metadata(time: str, client_id: str = "etl", send_ms: float = 0.0) -> str:
    """Returns the line of a consumer's METADATA that took a millisecond."""
    text = line(3, time=time, version=12, client_id=client_id, sendTimeMs=send_ms)
    return f"{text.decode()}\n"


def created(time: str, topic: str, partitions: int) -> str:
    """Returns a controller's line of a topic that was created."""
    request = {"topics": [{"name": topic, "numPartitions": partitions, "replicationFactor": 1}]}
    response = {"topics": [{"name": topic, "errorCode": 0, "numPartitions": partitions}]}
    text = line(19, time=time, version=7, isForwarded=True, request=request, response=response)
    return f"{text.decode()}\n"


def deleted(time: str, topic: str) -> str:
    """Returns a controller's line of a topic that was deleted."""
    request = {"topics": [{"name": topic, "topicId": "AAAAAAAAAAAAAAAAAAAAAA"}]}
    response = {"responses": [{"name": topic, "topicId": "x", "errorCode": 0}]}
    text = line(20, time=time, version=6, isForwarded=True, request=request, response=response)
    return f"{text.decode()}\n"


def log(root: Path, broker: int, *lines: str) -> None:
    """Writes a broker's log."""
    path = root / f"broker-{broker}" / "kafka-request.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))


def history(folder: Path, *hours: str, cluster: str | None = None, available: int = 4) -> str:
    """Writes a line of broker 1's volume for each hour, such as 2026-11-20T10."""
    volume = {"broker_id": 1, "log_dir": "/d", "total_bytes": 10, "available_bytes": available}
    named = {} if cluster is None else {"cluster_id": cluster}
    folder.mkdir(parents=True, exist_ok=True)
    for hour in hours:
        line = {"time": f"{hour}:00:00Z", "origin": "a", "volumes": [volume], "offline": []}
        path = folder / f"volumes-{cluster}-{hour.replace('-', '')}.jsonl"
        path.write_text(json.dumps(line | named) + "\n")
    return str(folder)
