"""``throttle-sidecar replay-decisions``."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sidecar.cli import group
from sidecar.history.folder import Folder
from sidecar.history.volume_line import to_line
from tests.sidecar.throttle.build import reading, whole

BEGIN_S = 1_767_600_000.0
LIMIT = "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE"
ENV = {f"{LIMIT}_BYTES": "30"}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Ten minutes of a volume that has 10 to 55 bytes available, of 100, and back."""
    folder = Folder(tmp_path, "a", 1 << 30)
    for minute, available in enumerate((55, 50, 40, 30, 20, 10, 20, 35, 50, 55)):
        at = BEGIN_S + 60.0 * minute
        folder.append(to_line(whole(at, [reading(1, at, {"/d": available})]), "a", at), at)
    return tmp_path


def replay(history: Path, *args: str, env: dict[str, str] | None = None) -> Result:
    words = ["replay-decisions", "--history", str(history), *args]
    return CliRunner().invoke(group, words, env=ENV if env is None else env)


def throttles(result: Result) -> list[dict[str, object]]:
    assert 0 == result.exit_code, result.output
    found: list[dict[str, object]] = json.loads(result.stdout)["throttles"]
    return found


def test_the_table_says_when_how_long_and_for_what(history: Path) -> None:
    """And that it is open loop."""
    result = replay(history, "--set", "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES=15")
    assert 0 == result.exit_code, result.output
    words = " ".join(result.stdout.split())
    assert "2026-01-05 08:03:00 4 min 0 60 s broker 1 /d, 10 B left at least" in words
    assert (
        "10 observations from 2026-01-05 08:00:00 to 2026-01-05 08:09:00 UTC: 1 throttle" in words
    )
    assert "Open loop" in words
    assert 80 >= max(len(line) for line in result.stdout.splitlines() if line.startswith("2026"))


def test_another_limit_takes_the_place_of_the_one_in_force(history: Path) -> None:
    """Of the other type too; no broker is asked, so none need be named."""
    (throttle,) = throttles(replay(history, "--json"))
    expected = {"from": "2026-01-05T08:03:00.000Z", "until": "2026-01-05T08:07:00.000Z"}
    assert (expected | {"seconds": 240.0, "least_available_bytes": 10}).items() <= throttle.items()
    (longer,) = throttles(replay(history, "--json", "--set", f"{LIMIT}_RATIO=0.45"))
    assert 360.0 == longer["seconds"]
    assert [] == throttles(replay(history, "--json", "--set", f"{LIMIT}_BYTES=9"))


def test_the_picture_is_svg(history: Path, tmp_path: Path) -> None:
    """It has the factor, and what the nearest volume has beyond its limit."""
    file = tmp_path / "plot.svg"
    assert 0 == replay(history, "--plot", str(file)).exit_code
    text = file.read_text("utf-8")
    assert text.startswith("<svg")
    assert 2 == text.count('<path class="line" stroke="#0072b2" d="M64')


@pytest.mark.parametrize(
    ("args", "env", "expected"),
    [
        (["--set", "0.1"], ENV, "KEY=VALUE is needed"),
        (["--set", "limit=0.1"], ENV, "KEY=VALUE is needed"),
        (["--set", f"{LIMIT}_RATIO=2"], ENV, "2"),
        (["--set", "SIDECAR_NO_SUCH=1"], ENV, "SIDECAR_NO_SUCH"),
        ([], {}, "exactly one"),
    ],
)
def test_what_is_wrong_is_refused(
    history: Path, args: list[str], env: dict[str, str], expected: str
) -> None:
    """With a sentence, and exit code 2."""
    result = replay(history, *args, env=env)
    assert 2 == result.exit_code
    assert expected in result.stderr


def test_a_folder_without_a_history(tmp_path: Path) -> None:
    """It may be the wrong one."""
    result = replay(tmp_path)
    assert 2 == result.exit_code
    assert "has no observation" in result.stderr
