"""Tables of the page."""

import re

from usage_pipeline.report.grid import Cell, named, table


def test_headings_stand_over_their_cells() -> None:
    """Numbers stand to the right, known or not; texts stand to the left."""
    drawn = table("t", ("Who", "Rate", "Share"), [[named("alice"), Cell("2", 2.0), Cell("-")]])
    expected = ["", ' class="n"', ' class="n"']
    assert expected == re.findall(r'<th scope="col"(.*?)>', drawn)
    assert expected == [
        re.sub(r' data-\w="[^"]*"', "", attributes)
        for attributes in re.findall(r"<td(.*?)>", drawn)
    ]
