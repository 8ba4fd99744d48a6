"""Kafka's tools and the sidecar's principal have the same name everywhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT

TOOLS = "acls|configs|delete-records|get-offsets|log-dirs|reassign-partitions|storage|topics"
"""The tools of Apache Kafka's bin/ that the texts name."""

KINDS = (".md", ".py", ".html", ".yaml", ".properties", ".service", ".java")


def texts() -> Iterator[tuple[Path, str]]:
    """The texts that a person reads: pages, manifests and code, without tests."""
    folders = ("docs", "deploy", "sidecar", "usage_pipeline", "kafka_lab")
    for path in (*ROOT.glob("*.md"), *(path for folder in folders for path in _under(folder))):
        if path.suffix in KINDS and not {"target", "test"} & set(path.parts):
            yield path, path.read_text(encoding="utf-8")


def _under(folder: str) -> Iterator[Path]:
    return (ROOT / folder).rglob("*")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (rf"\bkafka-(?:{TOOLS})\b(?:\.sh)?", "kafka-(?:" + TOOLS + r")\.sh"),
        (r"\bUser:(?:throttle-)?sidecar\b", "User:throttle-sidecar"),
    ],
    ids=["Kafka's tools", "the principal"],
)
def test_one_name(pattern: str, expected: str) -> None:
    """It is that of Apache Kafka's distribution, and that of docs/security.md."""
    found = [(path, name) for path, text in texts() for name in re.findall(pattern, text)]
    assert 5 < len(found)
    assert [] == [each for each in found if not re.fullmatch(expected, each[1])]
