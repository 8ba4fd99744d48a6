"""The committed rules, read."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "prometheus"
RULES = FOLDER / "rules" / "throttle-sidecar.yaml"
CASES = sorted((FOLDER / "tests").glob("*.yaml"))

METRIC = re.compile(r"(?<![:\w])kafka_throttle_[a-z_]+")
"""A sidecar's metric; not a recorded one, which has a colon before."""


@cache
def rules() -> list[dict[str, Any]]:
    """Every rule."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    """The rules that alert; a name may come twice, with two severities."""
    return [rule for rule in rules() if "alert" in rule]


def documented() -> set[str]:
    """The metrics of docs/metrics.md, which another test compares with the code."""
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    names = set(re.findall(r"^\| `(kafka_throttle_[a-z_]+)`", text, re.MULTILINE))
    histogram = "kafka_throttle_poll_duration_seconds"
    assert histogram in names
    return names | {f"{histogram}_bucket", f"{histogram}_count"}
