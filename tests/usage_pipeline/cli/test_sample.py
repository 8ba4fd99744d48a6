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
    assert 1100 == json.loads(Path(named["--capacity"]).read_text())["smallest_capacity_percent"]


@pytest.mark.parametrize("size", ["", "MB", "-1MB", "1.5.2GB", "3 apples"])
def test_what_is_no_size_is_refused(tmp_path: Path, size: str) -> None:
    """The message says how to write one."""
    result = CliRunner().invoke(
        group, ["pipeline", "sample", "--out", str(tmp_path), f"--size={size}"]
    )
    assert 2 == result.exit_code
    assert "write 500MB or 2.5GB" in result.stderr


def test_a_folder_with_files_in_it_is_refused(tmp_path: Path) -> None:
    """Logs of other brokers, of an earlier sample, would be read with these."""
    (tmp_path / "request-logs").mkdir()
    result = CliRunner().invoke(group, ["pipeline", "sample", "--out", str(tmp_path)])
    assert (2, True) == (
        result.exit_code,
        "is not empty; name an empty or new folder" in result.stderr,
    )
    assert [tmp_path / "request-logs"] == list(tmp_path.iterdir())
