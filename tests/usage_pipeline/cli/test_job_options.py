"""The job's options refuse some values by themselves."""

import pytest
from click.testing import CliRunner

from sidecar.cli import group


@pytest.mark.parametrize("option", ["--out", "--request-logs", "--volumes"])
def test_credentials_in_a_path_are_refused(option: str) -> None:
    """The message does not repeat them."""
    words = {"--out": "tables", option: "s3a://key:hidden@logs/x"}
    options = [word for pair in words.items() for word in pair]
    done = CliRunner().invoke(group, ["pipeline", "silver", *options])
    assert (2, True) == (done.exit_code, "s3://logs/x: a path must not contain" in done.output)
    assert "hidden" not in done.output


@pytest.mark.parametrize("command", ["silver", "usage", "run", "stream"])
def test_a_layout_that_can_not_be_used_is_refused(command: str) -> None:
    """The message names the conversion."""
    words = ["pipeline", command, "--out", "tables", "--request-logs", "logs"]
    done = CliRunner().invoke(group, [*words, "--layout", "%d %highlight{%p} %m%n"])
    assert 2 == done.exit_code
    assert "'--layout': %highlight can't be used here" in done.output


@pytest.mark.parametrize("days", ["1e12", "inf", "nan", "-1"])
def test_days_to_retain_files_are_a_number_of_this_century(days: str) -> None:
    """Anything else is refused before Spark starts, without a traceback."""
    options = ["--out", "tables", "--volumes", "history", "--retained-days", days]
    done = CliRunner().invoke(group, ["pipeline", "silver", *options])
    assert (2, True) == (done.exit_code, "'--retained-days'" in done.output), done.output


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("90", "'90'"),
        ("P3M", "'P3M'"),
        ("PT36H", "tables have whole days; use a number of days, such as P90D"),
        ("P0D", "must be longer than nothing"),
    ],
)
def test_days_to_keep_are_whole_days(value: str, words: str) -> None:
    """Anything else is refused before the run starts."""
    options = ["--out", "tables", "--volumes", "history", "--keep", value]
    done = CliRunner().invoke(group, ["pipeline", "silver", *options])
    assert (2, True) == (done.exit_code, words in done.output), done.output
    assert "--keep" in done.output
