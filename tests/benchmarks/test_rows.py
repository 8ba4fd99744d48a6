"""The table shows each figure, and marks the targets that were missed."""

import pytest

from benchmarks.rows import Row, as_table, median_row, percentile

pytestmark = pytest.mark.slow


def test_a_missed_target_is_marked() -> None:
    """A figure at its target is met, one above is marked, one without a target is only shown."""
    rows = [Row("a", 2.0, "s", 2.0), Row("b", 3.0, "s", 2.0), Row("c", 9.0, "s")]
    rows += [Row("d", 3.0, "s", 2.0, at_least=True), Row("e", 1.0, "s", 2.0, at_least=True)]
    table = as_table(rows)

    assert ["yes", "MISSED", "", "yes", "MISSED"] == [
        line.split("|")[-3].strip() for line in table.splitlines()[2:]
    ]


def test_a_median_is_reported_with_its_spread() -> None:
    """Several measurements are one figure, with the lowest, the highest and their number."""
    row = median_row("a poll", [0.3, 0.1, 0.9], "s", 0.5)

    assert Row("a poll, median of 3", 0.3, "s", 0.5, (0.1, 0.9)) == row
    assert "0.1 to 0.9" in as_table([row])


def test_a_percentile_is_a_value_that_was_measured() -> None:
    """Half of the values are at or below the lower middle one; all are at or below the highest."""
    assert 3 == percentile([4, 1, 2, 3], 0.5)
    assert 4 == percentile([4, 1, 2, 3], 1.0)
