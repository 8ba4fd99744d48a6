"""What ``pipeline stream`` refuses before it starts Spark, and what it tells of a batch."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sidecar.cli import group
from sidecar.cli.pipeline.stream import _properties, _tell
from sidecar.pipeline.stream import Progress


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name either --request-logs or --topic"),
        (
            ["--request-logs", "logs", "--topic", "t", "--bootstrap-server", "b:1"],
            "name either --request-logs or --topic",
        ),
        (["--topic", "t"], "--topic and --bootstrap-server go together"),
        (
            ["--request-logs", "logs", "--bootstrap-server", "b:1"],
            "--topic and --bootstrap-server go together",
        ),
        (["--request-logs", "logs", "--table", "gold_replay"], "'gold_replay' is not one of"),
        (["--request-logs", "logs", "--watermark", "0"], "--watermark"),
    ],
)
def test_what_does_not_go_together_is_refused(words: list[str], said: str) -> None:
    """With what to do, and exit code 2."""
    result = CliRunner().invoke(group, ["pipeline", "stream", "--out", "live", *words])
    assert 2 == result.exit_code
    assert said in result.output


def test_the_clients_properties_are_kafkas(tmp_path: Path) -> None:
    """The file that Kafka's own tools take."""
    file = tmp_path / "client.properties"
    file.write_text("# ours\nsecurity.protocol = SASL_SSL\nsasl.mechanism:PLAIN\n")
    assert {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"} == _properties(file)


def test_a_batch_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """One without lines is not."""
    _tell(Progress("silver_request", 3, 1_500, 750.4, ""))
    _tell(Progress("gold_usage_1s", 4, 0, 0.0, "2026-11-20T10:00:00.000Z"))
    _tell(Progress("gold_usage_1s", 5, 10, 5.0, "2026-11-20T10:00:00.000Z"))
    assert [
        "silver_request: batch 3, 1,500 lines, 750 a second",
        "gold_usage_1s: batch 5, 10 lines, 5 a second, written up to 2026-11-20T10:00:00.000Z",
    ] == capsys.readouterr().err.splitlines()
