"""What the machine took from a measurement."""

from pathlib import Path

import pytest

from benchmarks.harness.machine import Stolen

pytestmark = pytest.mark.slow


def test_stolen_time_is_of_all_time_since_then(tmp_path: Path) -> None:
    """Of 200 ticks 25 were stolen; what guests had is in the user's time already."""
    file = tmp_path / "stat"
    file.write_text("cpu  100 0 50 1000 3 0 2 40 7 0\ncpu0 1 2 3\n", encoding="ascii")
    stolen = Stolen(file)
    file.write_text("cpu  150 0 75 1095 8 0 2 65 90 0\ncpu0 1 2 3\n", encoding="ascii")
    assert "12 % of the CPU time was stolen by others on the host" == str(stolen)


def test_no_time_is_no_share(tmp_path: Path) -> None:
    """Asked at once, nothing has passed."""
    file = tmp_path / "stat"
    file.write_text("cpu  1 2 3 4 5 6 7 8 9 10\n", encoding="ascii")
    assert "0 % of the CPU time was stolen by others on the host" == str(Stolen(file))
