"""What ``pipeline stream`` refuses before it starts Spark, and what it reports of a batch."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from sidecar.cli import group
from tests.usage_pipeline.build import committed
from usage_pipeline.cli.stream import Reporter
from usage_pipeline.streaming.stream import Progress
from usage_pipeline.tables.schemas import DIM_TOPIC


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "use either --request-logs or --topic"),
        (
            ["--request-logs", "logs", "--topic", "t", "--bootstrap-server", "b:1"],
            "use either --request-logs or --topic",
        ),
        (["--topic", "t"], "use --topic and --bootstrap-server together"),
        (
            ["--request-logs", "logs", "--bootstrap-server", "b:1"],
            "use --topic and --bootstrap-server together",
        ),
        (["--request-logs", "logs", "--table", "gold_replay"], "'gold_replay'"),
        (["--request-logs", "logs", "--trigger", "0s"], "--trigger"),
        (["--request-logs", "logs", "--trigger", "5"], "'5' has no unit: write 5s, 5m or 5h"),
        (["--request-logs", "logs", "--max-bytes", "1G"], "'1G' may mean 1GB or 1Gi"),
    ],
)
def test_what_does_not_go_together_is_refused(words: list[str], said: str) -> None:
    """The message says what to do, and the exit code is 2."""
    result = CliRunner().invoke(group, ["pipeline", "stream", "--out", "live", *words])
    assert 2 == result.exit_code
    assert said in result.output


def test_a_batch_is_reported_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A batch without messages has none; they are counted."""
    reporter = Reporter("message")
    reporter(Progress(3, 1_500, 750.4))
    reporter(Progress(4, 0, 0.0))
    reporter(Progress(5, 1, 5.0))
    reporter(Progress(6, 2_000, 5.0, resent=1_200, unread=3))
    assert [
        "batch 3: 1,500 messages, 750.4 a second",
        "batch 5: 1 message, 5.0 a second",
        "batch 6: 2,000 messages (1,200 repeated, skipped)"
        " (3 unreadable, in quarantine), 5.0 a second",
    ] == capsys.readouterr().err.splitlines()
    assert 3_501 == reporter.read


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--request-logs", "nowhere"], "nowhere: "),
        (["--request-logs", "logs", "--zone", "Mars"], "'Mars' "),
        (["--request-logs", "logs", "--broker-pattern", "("], "the broker pattern '('"),
        (["--request-logs", "logs", "--master", "moon"], "--master moon: "),
        (
            ["--topic", "t", "--bootstrap-server", "b:1", "--kafka-jars", "logs"],
            "logs has no jars; `mvn -f deploy/spark/kafka-connector/pom.xml package`",
        ),
        (["--topic", "t", "--bootstrap-server", "b:1", "--zone", "Mars"], "'Mars' "),
        (["--request-logs", "logs", "--out", "tables"], "tables has tables"),
    ],
)
def test_what_cannot_be_streamed_is_refused_before_spark_starts(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It says so in a line, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "logs" / "broker-1").mkdir(parents=True)
    (tmp_path / "logs" / "broker-1" / "kafka-request.log").touch()
    committed(tmp_path / "tables", DIM_TOPIC)
    result = CliRunner().invoke(group, ["pipeline", "stream", "--out", "live", *words])
    assert (2, True) == (result.exit_code, said in result.output)
    assert ["logs", "tables"] == sorted(path.name for path in tmp_path.iterdir())


def test_that_nothing_is_new_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run without new lines says so; after lines it does not."""
    log = tmp_path / "broker-1" / "kafka-request.log"
    log.parent.mkdir()
    log.touch()
    monkeypatch.chdir(tmp_path)
    batches = [Progress(0, 7, 5.0)]

    def streamed(*args: Any) -> None:
        while batches:
            args[-1](batches.pop())

    monkeypatch.setattr("usage_pipeline.runtime.session.session", lambda *_, **__: Mock())
    monkeypatch.setattr("usage_pipeline.streaming.file_source.closed_files", Mock())
    monkeypatch.setattr("usage_pipeline.streaming.stream.stream", streamed)
    words = ["--request-logs", str(tmp_path), "--out", str(tmp_path / "live"), "--until-read"]
    printed = [
        CliRunner().invoke(group, ["pipeline", "stream", *words]).stderr.splitlines()[-1]
        for _ in range(2)
    ]
    assert [
        "batch 0: 7 files, 5.0 a second",
        "There are no new lines.",
    ] == printed
