"""The tables of docs/ that are made of the code are current (``make docs``)."""

import pytest

from tools.pages import DOCS, TABLES, table, written

PAGES = {path.name: path for path in sorted(DOCS.glob("*.md"))}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name: str) -> None:
    """To write it anew changes nothing; if it does: make docs."""
    text = PAGES[name].read_text(encoding="utf-8")
    assert written(text) == text


def test_every_table_is_on_a_page() -> None:
    """Each is made for one page."""
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES.values())
    assert dict.fromkeys(TABLES, 1) == {
        name: text.count(f'<!-- made by "make docs": {name} -->') for name in TABLES
    }


def test_what_only_the_table_knows_stays() -> None:
    """The unit and the JMX name of a metric, whatever becomes of the other cells."""
    row = ("`kafka_throttle_factor`", "wrong", "`wrong`", "0 to 1", "wrong", "`type=A`")
    before = table(("metric", "type", "labels", "unit", "meaning", "proposal's JMX name"), [row])
    line = TABLES["metrics"](before).splitlines()[3]
    assert "`kafka_throttle_factor`" in line
    assert ("wrong" not in line, "| 0 to 1 |" in line, "`type=A`" in line) == (True, True, True)


def test_every_metric_has_a_unit() -> None:
    """Where a name ends in none it is written by hand."""
    lines = PAGES["metrics.md"].read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `kafka_throttle_")]
    assert [] == [cells[1] for cells in rows if not cells[4].strip()]


def test_a_cell_with_a_bar_is_one_cell() -> None:
    """As Markdown wants it."""
    assert "| a\\|b | |\n" == table(("x", "y"), [("a|b", "")]).partition("---|\n")[2]
