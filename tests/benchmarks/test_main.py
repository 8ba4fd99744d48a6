"""``python -m benchmarks`` measures the benchmarks that are named, and reports failures."""

from pathlib import Path

import pytest

from benchmarks import __main__ as program
from benchmarks.rows import Row

pytestmark = pytest.mark.slow


def _measured(name: str) -> list[Row]:
    if name == "api":
        raise TimeoutError("nobody answers")
    return [Row(f"figure of {name}", 2.0, "s", 1.0)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "measure_apart", _measured)


def _main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["benchmarks", *arguments])
    return program.main()


def test_a_missed_target_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only those named are measured; what is printed is also written; the exit code is 0."""
    out = tmp_path / "table.md"

    assert 0 == _main(monkeypatch, "poll", "fold", "--out", str(out))

    printed = capsys.readouterr().out
    assert printed == out.read_text()
    assert "figure of poll" in printed
    assert "figure of bytes" not in printed
    assert 2 == printed.count("MISSED")


def test_one_that_can_not_be_measured_is_a_failure_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are measured all the same, the reason is shown, and the exit code is 1."""
    assert 1 == _main(monkeypatch)

    printed = capsys.readouterr()
    measured = {name for name in program.NAMES if f"figure of {name}" in printed.out}
    assert set(program.NAMES) - {"api"} == measured
    assert "TimeoutError: nobody answers" in printed.err


def test_an_unknown_benchmark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is the usual one, and nothing runs."""
    with pytest.raises(SystemExit) as ended:
        _main(monkeypatch, "polls")
    assert 2 == ended.value.code
