"""``budgets check``: who is past a budget, and when the others will be."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from tests.support.background import bootstrap, running
from tests.support.fake_broker import (
    DESCRIBE_LOG_DIRS,
    FakeBroker,
    FakeCluster,
    FakeLogDir,
    FakeRequest,
)

MB = 1_000_000
FILE = """
[owners.web]
topics = ["clicks"]
soft = "30MB"
hard = "40MB"

[owners.etl]
prefixes = ["etl."]
hard = "{hard}"
replicas = true

[owners.idle]
topics = ["none"]
hard = 1
"""


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """Two brokers with replicas of two topics; etl.a grows by 1 MB with each reading."""
    cluster = FakeCluster().add(2)
    readings: Counter[int] = Counter()

    def grown(broker: FakeBroker, request: FakeRequest) -> bytes:
        readings[broker.broker_id] += 1
        size = (100 + readings[broker.broker_id]) * MB
        broker.has(FakeLogDir("/d", sizes=(("etl.a", size), ("clicks", 35 * MB))))
        del cluster.answerers[DESCRIBE_LOG_DIRS]
        answer = broker.answer(request)
        cluster.answerers[DESCRIBE_LOG_DIRS] = grown
        return answer

    cluster.answerers[DESCRIBE_LOG_DIRS] = grown
    with running(cluster):
        yield cluster


def check(cluster: FakeCluster, folder: Path, hard: str) -> Result:
    """Run the command, with a second between two readings."""
    path = folder / "budgets.toml"
    path.write_text(FILE.format(hard=hard))
    words = ["budgets", "check", str(path), "--for", "1s", "--bootstrap-server", bootstrap(cluster)]
    return CliRunner().invoke(group, words)


def rows(result: Result) -> dict[str, str]:
    """Owner -> the words of its row."""
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    return {line[0]: " ".join(line[1:]) for line in lines}


def test_who_is_past_a_budget_comes_first(cluster: FakeCluster, tmp_path: Path) -> None:
    """Two replicas of 102 MB are past 200 MB. The exit code says that."""
    result = check(cluster, tmp_path, "200MB")
    assert 1 == result.exit_code, result.output
    found = rows(result)
    assert ["etl", "web", "idle"] == [each for each in found if each in {"etl", "web", "idle"}]
    assert "204.0 MB (102 %) 200.0 MB 200.0 MB 1 paused 0 s" == found["etl"]
    assert "35.0 MB (88 %) 30.0 MB 40.0 MB 1 free" == found["web"], "it does not grow"
    assert "0 B (0 %) 1 B 1 B 0 free" == found["idle"]


def test_the_forecast_is_by_the_growth_between_two_readings(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    """2 MB in a second or more: 796 MB take minutes; only the hard size counts for the code."""
    result = check(cluster, tmp_path, "1GB")
    assert 0 == result.exit_code, result.output
    row = rows(result)["etl"]
    assert row.startswith("204.0 MB (20 %) 1.0 GB 1.0 GB 1 free ")
    assert row.endswith(" min")


def test_a_silent_broker_is_exit_code_2(cluster: FakeCluster, tmp_path: Path) -> None:
    """The others are shown all the same."""
    cluster.brokers[1].log_dirs_error = 31
    result = check(cluster, tmp_path, "1GB")
    assert 2 == result.exit_code
    assert "Not read, so owners may use more: broker 1: " in result.stderr
    assert "102.0 MB (10 %)" in rows(result)["etl"]
