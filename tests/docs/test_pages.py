"""The tables of docs/ that are made of the code are current (``make docs``)."""

import re

import pytest

from tests.sidecar.api.build import FakeSidecar
from tools.pages import DOCS, OWN_ROUTES, TABLES, table, written

PAGES = {path.name: path for path in sorted(DOCS.glob("*.md"))}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name: str) -> None:
    """Writing it again changes nothing; if it does, run make docs."""
    text = PAGES[name].read_text(encoding="utf-8")
    assert written(text) == text


def test_the_index_lists_every_page_once() -> None:
    """docs/README.md has each page under one of the four kinds."""
    kinds = re.split(r"^## ", PAGES["README.md"].read_text(encoding="utf-8"), flags=re.MULTILINE)[
        1:
    ]
    titles = [kind.partition("\n")[0] for kind in kinds]
    assert ["Tutorial", "How-to guides", "Reference", "Explanation"] == titles
    listed = [
        name for kind in kinds for name in re.findall(r"^- \[[^]]*\]\((.*?)\)", kind, re.MULTILINE)
    ]
    assert sorted(PAGES.keys() - {"README.md"}) == sorted(listed)


def test_every_table_is_on_a_page() -> None:
    """Each is made for one page."""
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES.values())
    assert dict.fromkeys(TABLES, 1) == {
        name: text.count(f'<!-- made by "make docs": {name} -->') for name in TABLES
    }


def test_what_only_the_table_knows_stays() -> None:
    """A metric's unit and JMX name stay, whatever becomes of the other cells."""
    row = ("`kafka_throttle_source`", "wrong", "`wrong`", "0 to 1", "wrong", "`type=A`")
    before = table(("metric", "type", "labels", "unit", "meaning", "proposal's JMX name"), [row])
    (line,) = [each for each in TABLES["metrics"](before).splitlines() if row[0] in each]
    assert "wrong" not in line
    assert ["| gauge |", "| `source` |", "| 0 to 1 |", "| `type=A` |"] == [
        cell for cell in ("| gauge |", "| `source` |", "| 0 to 1 |", "| `type=A` |") if cell in line
    ]


@pytest.mark.slow
async def test_routes_that_are_not_in_the_document_are_there() -> None:
    """They answer, and the document does not have them."""
    sidecar = FakeSidecar()
    documented = sidecar.app.openapi()["paths"]
    for request_line, _ in OWN_ROUTES:
        method, path = request_line.split()
        assert ("GET", 200) == (method, (await sidecar.get(path)).status_code), path
        assert path not in documented


def test_every_metric_has_a_unit() -> None:
    """If its name ends in none, it is written by hand."""
    lines = PAGES["metrics.md"].read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `kafka_throttle_")]
    assert [] == [cells[1] for cells in rows if not cells[4].strip()]


def test_a_cell_with_a_bar_is_one_cell() -> None:
    """Markdown wants it so."""
    assert "| a\\|b | |\n" == table(("x", "y"), [("a|b", "")]).partition("---|\n")[2]
