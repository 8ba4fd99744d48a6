"""Outputs of ``kafka-log-dirs.sh --describe``."""

import json
from datetime import date
from pathlib import Path

import pytest

from usage_pipeline.costs.inputs import CostsError
from usage_pipeline.costs.log_dirs import Snapshot, Topic, read_log_dirs

HEAD = """Querying brokers for log directories information
Received log directory information from brokers 0,1
"""


def output(*brokers: dict[str, int], error: str | None = None) -> str:
    """Returns what the tool of Kafka 4.3 prints, of brokers with a log dir each."""
    described = [
        {
            "broker": broker,
            "logDirs": [
                {
                    "partitions": [
                        {"partition": name, "size": size, "offsetLag": 0, "isFuture": False}
                        for name, size in sizes.items()
                    ],
                    "error": error,
                    "logDir": "/data",
                }
            ],
        }
        for broker, sizes in enumerate(brokers)
    ]
    return f"{HEAD}{json.dumps({'brokers': described, 'version': 1})}\n"


def test_replicas_are_bytes_and_partitions_count_once(tmp_path: Path) -> None:
    """A topic's name may contain hyphens."""
    file = tmp_path / "log-dirs-2026-11-20.json"
    file.write_text(output({"a-b-0": 5, "a-b-1": 7}, {"a-b-0": 5, "c-0": 0}))
    expected = Snapshot({"a-b": Topic(17, 2), "c": Topic(0, 1)}, is_whole=True)
    assert {date(2026, 11, 20): expected} == read_log_dirs(file)


def test_a_folder_has_a_file_for_each_day(tmp_path: Path) -> None:
    """A log dir with an error makes the bytes of its day a lower bound."""
    (tmp_path / "2026-11-20.json").write_text(output({"a-0": 1}))
    (tmp_path / "2026-11-21.json").write_text(output({"a-0": 2}, error="KAFKA_STORAGE_ERROR"))
    read = read_log_dirs(tmp_path)
    assert {20: True, 21: False} == {day.day: each.is_whole for day, each in read.items()}


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "has no files such as log-dirs-2026-11-20.json"),
        ({"today.json": ""}, "today.json: the name must contain its day"),
        ({"2026-02-30.json": ""}, "2026-02-30.json: the name must contain its day"),
        ({"2026-02-01-2026-02-02.json": ""}, "the name must contain its day"),
        ({"a-2026-11-20.json": "", "b-2026-11-20.json": ""}, "are of the same day; remove one"),
        ({"2026-11-20.json": HEAD}, 'is not an output of "kafka-log-dirs.sh --describe"'),
        ({"2026-11-20.json": '{"brokers": []}'}, "is not an output of"),
        ({"2026-11-20.json": output({"a": 1})}, "is not an output of"),
        ({"2026-11-20.json": output({"a-0": -1})}, "is not an output of"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, files: dict[str, str], problem: str) -> None:
    """The message has the file."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(CostsError) as raised:
        read_log_dirs(tmp_path)
    assert str(raised.value).startswith(str(tmp_path))
    assert problem in str(raised.value)


def test_what_is_not_utf_8_is_no_output(tmp_path: Path) -> None:
    """Such as a damaged file."""
    file = tmp_path / "2026-11-20.json"
    file.write_bytes(b'{"brokers": [{"logDirs": [{"error": "\xff", "partitions": []}]}]}')
    with pytest.raises(CostsError, match="is not an output of"):
        read_log_dirs(file)
