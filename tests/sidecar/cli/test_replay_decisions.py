"""``throttle-sidecar replay-decisions``."""

import json
import re
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


def test_a_release_margin_takes_the_place_of_one_of_the_other_unit(history: Path) -> None:
    """So that a limit of the other type can be replayed."""
    margin = "SIDECAR_STORAGE_RELEASE_MARGIN"
    words = ("--json", "--set", f"{LIMIT}_RATIO=0.3", "--set", f"{margin}_RATIO=0.1")
    (throttle,) = throttles(replay(history, *words, env=ENV | {f"{margin}_BYTES": "3"}))
    assert 300.0 == throttle["seconds"]


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--config", "storage.per_volume_limit.min_available_bytes = 30\n"),
        (
            "--properties",
            "client.quota.callback.static.storage.per.volume.limit.min.available.bytes=30\n",
        ),
    ],
)
def test_another_limit_takes_the_place_of_a_file_s(
    history: Path, tmp_path: Path, option: str, text: str
) -> None:
    """As it takes the place of the environment's."""
    file = tmp_path / "settings"
    file.write_text(text, encoding="utf-8")
    words = ("--json", option, str(file))
    assert 240.0 == throttles(replay(history, *words, env={}))[0]["seconds"]
    (longer,) = throttles(replay(history, *words, "--set", f"{LIMIT}_RATIO=0.45", env={}))
    assert 360.0 == longer["seconds"]


def test_the_picture_is_svg(history: Path, tmp_path: Path) -> None:
    """It has the factor, and what the nearest volume has beyond its limit."""
    file = tmp_path / "plot.svg"
    assert 0 == replay(history, "--plot", str(file)).exit_code
    text = file.read_text("utf-8")
    assert text.startswith("<svg")
    assert 2 == text.count('<path class="line" stroke="#0072b2" d="M64')
    failed = replay(history, "--plot", str(tmp_path / "missing" / "plot.svg"))
    assert 1 == failed.exit_code
    assert "plot.svg" in failed.output
    assert "No such file" in failed.output


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


def write_disk(folder: Path, *, step_s: int, without: range = range(0)) -> Path:
    """Six days of a disk that is at its limit for 6 of 8 hours, without some of them."""
    files = Folder(folder, "a", 1 << 30)
    for second in range(0, 6 * 86_400 + 1, step_s):
        at = BEGIN_S + second
        if second not in without:
            available = 50 if second % (8 * 3600) < 2 * 3600 else 20
            files.append(to_line(whole(at, [reading(1, at, {"/d": available})]), "a", at), at)
    return folder


def share(result: Result) -> str:
    assert 0 == result.exit_code, result.output
    found = re.search(r"\(([0-9.]+)% of the time", result.stdout)
    assert found is not None
    return found[1]


TWO_DAYS = range(2 * 86_400, 4 * 86_400)


@pytest.mark.slow
def test_times_without_readings_are_no_freedom(tmp_path: Path) -> None:
    """The share of the same disk is the same when two days are missing, and they are named."""
    for name, without in (("whole", range(0)), ("gap", TWO_DAYS)):
        (tmp_path / name).mkdir()
        write_disk(tmp_path / name, step_s=300, without=without)
    assert "75.00" == share(replay(tmp_path / "whole"))
    result = replay(tmp_path / "gap")
    assert "75.00" == share(result)
    assert (
        "Readings are missing for 2 days, which are left out of all durations and of the share:\n"
        "  2026-01-07 08:00:00 to 2026-01-09 08:00:00: broker 1 /d\n"
    ) in result.stdout
    document = json.loads(replay(tmp_path / "gap", "--json").stdout)
    assert [[{"broker_id": 1, "log_dir": "/d"}]] == [
        each["log_dirs"] for each in document["missing"]
    ]
    assert 4 * 86_400.0 == document["seconds_with_readings"]


@pytest.mark.slow
def test_readings_further_apart_than_the_validity_are_refused(tmp_path: Path) -> None:
    """With three ways out, and a share of the known times."""
    write_disk(tmp_path, step_s=3600)
    result = replay(tmp_path)
    assert 2 == result.exit_code
    assert "the readings of broker 1 are usually PT1H apart" in result.stderr
    assert "a reading is valid for PT5M" in result.stderr
    validity = "SIDECAR_THROTTLE_FACTOR_VALIDITY_DURATION=PT1H"
    assert f"--set {validity}" in result.stderr
    assert "--long-steps" in result.stderr
    assert "75.00" == share(replay(tmp_path, "--set", validity))
    result = replay(tmp_path, "--long-steps")
    assert "75.00" == share(result)
    assert 10 == result.stdout.count(": broker 1 /d\n")
    assert "and 134 other times (--json has all)" in result.stdout


@pytest.mark.slow
def test_a_gap_s_throttle_and_chart_say_so(tmp_path: Path) -> None:
    """One that began before the gap and lasts after it."""
    write_disk(tmp_path, step_s=300, without=range(3 * 3600, 4 * 3600))
    plot = tmp_path / "plot.svg"
    result = replay(tmp_path, "--plot", str(plot), "--set", "SIDECAR_THROTTLE_FACTOR_FALLBACK=0.0")
    assert "5 h, with gaps 0 " in " ".join(result.stdout.split())
    assert "no readings" in plot.read_text("utf-8")


def test_a_broker_that_is_read_for_a_part_only_is_named(history: Path) -> None:
    """It counts as not there before and after, which is not sure."""
    at = BEGIN_S + 1.0
    Folder(history, "b", 1 << 30).append(
        to_line(whole(at, [reading(2, at, {"/d": 50})]), "b", at), at
    )
    assert (
        "Broker 2 /d has readings only from 2026-01-05 08:00:01 to 2026-01-05 08:00:01: before and"
        " after, it counts as not there."
    ) in replay(history).stdout


def test_a_folder_without_a_history(tmp_path: Path) -> None:
    """It may be the wrong one, or have other data."""
    result = replay(tmp_path)
    assert 2 == result.exit_code
    assert "has no observation: is it the folder of a history?" in result.stderr
    assert "throttle-sidecar history import" in result.stderr


def test_lines_that_can_t_be_read_are_named(history: Path, tmp_path: Path) -> None:
    """With the number, and the first one's file, line and field."""
    (file,) = history.iterdir()
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text(
        "".join(line.replace('"total_bytes":100', '"total_bytes":1e2') for line in lines)
    )
    result = replay(history)
    assert 2 == result.exit_code
    assert (
        "has no observation: 10 lines could not be read, the first because of"
        " volumes-a-20260105T08.jsonl, line 1: field volumes[0].total_bytes: "
    ) in result.stderr
    file.write_text(lines[0] + lines[1].replace('"origin":"a",', "") + "".join(lines[2:]))
    assert (
        "1 lines could not be read and were skipped, the first because of"
        " volumes-a-20260105T08.jsonl, line 2: field origin: it is missing;"
    ) in replay(history).stdout
