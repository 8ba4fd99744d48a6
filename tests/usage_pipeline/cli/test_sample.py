"""``pipeline sample``: made-up logs on the command line."""

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from sidecar.cli import group


def test_it_says_what_it_wrote_and_how_to_go_on(tmp_path: Path) -> None:
    """It names the folders and files that the next command takes."""
    words = ["--size", "0.3MB", "--brokers", "2", "--hours", "0.5", "--history-days", "1"]
    out = tmp_path / "a sample"
    result = CliRunner().invoke(group, ["pipeline", "sample", "--out", str(out), *words])
    assert (0, "") == (result.exit_code, result.stderr)
    assert "MB of 2 brokers." in result.stdout
    options = shlex.split(result.stdout.splitlines()[1])
    named = dict(zip(options[3::2], options[4::2], strict=True))
    assert ["broker-0", "broker-1"] == sorted(
        path.name for path in Path(named["--request-logs"]).iterdir()
    )
    assert 25 == len(list(Path(named["--volumes"]).iterdir()))
    assert "quotas" in json.loads(Path(named["--quotas"]).read_text())
    assert "2026-01-05T08:30:00Z" == named["--as-of"]
    assert 1100 == json.loads(Path(named["--capacity"]).read_text())["smallest_capacity_percent"]


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        ("", "is not a size such as 10Gi, 10GB or"),
        ("MB", "is not a size such as 10Gi, 10GB or"),
        ("-1MB", "must be > 0"),
        ("0", "is less than 1 bytes"),
        ("1.5.2GB", "is not a size such as 10Gi, 10GB or"),
        ("3 apples", "has no unit of a size: write one of kB, MB,"),
        ("100M", "may mean 100MB or 100Mi: write one of the two"),
    ],
)
def test_what_is_no_size_is_refused(tmp_path: Path, size: str, sentence: str) -> None:
    """The message says how to write one."""
    result = CliRunner().invoke(
        group, ["pipeline", "sample", "--out", str(tmp_path), f"--size={size}"]
    )
    assert 2 == result.exit_code
    assert f"'{size}' {sentence}" in " ".join(result.stderr.split())


def test_a_folder_with_files_in_it_is_refused(tmp_path: Path) -> None:
    """Logs of other brokers, of an earlier sample, would be read with these."""
    (tmp_path / "request-logs").mkdir()
    result = CliRunner().invoke(group, ["pipeline", "sample", "--out", str(tmp_path)])
    assert (2, True) == (
        result.exit_code,
        "is not empty; name an empty or new folder" in result.stderr,
    )
    assert [tmp_path / "request-logs"] == list(tmp_path.iterdir())
