"""Charts are whole SVG documents in which each point is where its figures say."""

import re
from xml.etree import ElementTree as ET

import pytest

from sidecar.cli.chart import Line, Mark, Panel, round_step, svg

_SVG = "{http://www.w3.org/2000/svg}"


def _elements(document: str, kind: str, name: str = "") -> list[ET.Element]:
    found = ET.fromstring(document).iter(f"{_SVG}{kind}")
    return [each for each in found if name in each.get("class", "")]


def _texts(document: str) -> list[str]:
    return [each.text or "" for each in _elements(document, "text")]


def _drawn(document: str) -> list[list[tuple[float, float]]]:
    """The lines of data, as pixels; not those of the legends."""
    paths = [path.get("d", "") for path in _elements(document, "path", "line")]
    return [
        [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)]
        for path in paths
        if "h" not in path
    ]


def _height_of(document: str, label: str) -> float:
    """The y of the grid line with this label."""
    labels = [each for each in _elements(document, "text") if each.get("text-anchor") == "end"]
    (at,) = [each.get("y") for each in labels if each.text == label]
    return float(at or "nan") - 4


def test_points_are_where_the_labelled_grid_says() -> None:
    """The width is 0 to 60 seconds, and 10 MB/s is at the line of 10."""
    panel = Panel("throughput, MB/s", [Line("ours", [(0.0, 0.0), (30.0, 10.0), (60.0, 20.0)])])
    document = svg("Traffic", "seconds", [panel])
    ((begin, middle, end),) = _drawn(document)
    assert pytest.approx((begin[0] + end[0]) / 2) == middle[0]
    assert pytest.approx(_height_of(document, "10"), abs=0.1) == middle[1]
    assert pytest.approx(_height_of(document, "20"), abs=0.1) == end[1]
    assert end[1] < middle[1] < begin[1], "more is further up"
    assert {"Traffic", "seconds", "throughput, MB/s", "ours", "0", "60"} <= set(_texts(document))


def test_panels_share_their_time_axis() -> None:
    """Equal moments are above each other, also where one panel has less of it."""
    lower = [Line("free", [(0.0, 5.0), (10.0, 0.0)])]
    panels = [Panel("rate", [Line("a", [(5.0, 1.0), (10.0, 1.0)])]), Panel("space", lower)]
    above, below = _drawn(svg("", "s", panels))
    assert above[-1][0] == below[-1][0]
    assert above[0][0] == pytest.approx((below[0][0] + below[-1][0]) / 2)
    assert max(y for _, y in above) < min(y for _, y in below)


def test_lines_are_distinct_without_colour() -> None:
    """They differ by their dashes, and those of one style are alike."""
    lines = [
        Line(name, [(0.0, 1.0), (1.0, 1.0)], style)
        for name, style in zip("abc", (0, 1, 0), strict=True)
    ]
    document = svg("", "s", [Panel("", lines)])
    strokes = [
        (path.get("stroke"), path.get("stroke-dasharray"))
        for path in _elements(document, "path", "line")
        if "h" not in path.get("d", "")
    ]
    assert strokes[0] == strokes[2]
    assert strokes[0][1] != strokes[1][1]
    assert 6 == len(_elements(document, "path", "line")), "each is in the legend, too"


def test_marks_are_named_where_they_are() -> None:
    """A moment is at its time, a height at its figure, and a height belongs to the axis."""
    panel = Panel(
        "free, MB",
        [Line("free", [(0.0, 10.0), (10.0, 10.0)])],
        moments=[Mark("freed", 5.0)],
        heights=[Mark("limit", 20.0)],
    )
    document = svg("", "s", [panel])
    marks = [path.get("d", "") for path in _elements(document, "path", "mark")]
    ((first, last),) = _drawn(document)
    assert f"M{(first[0] + last[0]) / 2:.1f} " in marks[1]
    assert pytest.approx(_height_of(document, "20"), abs=0.1) == float(
        marks[0].split(" ")[1].partition("H")[0]
    )
    assert {"freed", "limit"} <= set(_texts(document))


def test_a_mark_at_the_right_edge_is_named_before_it() -> None:
    """There is no room behind it."""
    line = Line("a", [(0.0, 0.0), (60.0, 1.0)])
    marks = [Mark("early", 5.0), Mark("late", 60.0)]
    document = svg("", "s", [Panel("p", [line], moments=marks)])
    anchors = {each.text: each.get("text-anchor") for each in _elements(document, "text")}
    assert ("start", "end") == (anchors["early"], anchors["late"])


def test_a_flood_is_cut_where_that_is_asked_for() -> None:
    """The rest can still be seen; the line is drawn up to there."""
    points = [(0.0, 10.0), (1.0, 1000.0), (2.0, 10.0)]
    document = svg("", "s", [Panel("", [Line("", points)], top=20.0)])
    assert "200" not in _texts(document)
    assert "20" in _texts(document)
    ((_, flood, _),) = _drawn(document)
    assert flood[1] < _height_of(document, "20")


def test_what_has_a_meaning_in_xml_is_text() -> None:
    """A name may have any characters."""
    panel = Panel("a < b & c", [Line("<script>", [(0.0, 0.0)])])
    document = svg("x > y", "&", [panel])
    assert {"a < b & c", "<script>", "x > y", "&"} <= set(_texts(document))


def test_points_that_fall_together_are_drawn_once() -> None:
    """A minute at 50 samples a second is no larger than the picture needs."""
    points = [(n / 1e6, 1.0) for n in range(3000)]
    document = svg("", "s", [Panel("", [Line("", [*points, (100.0, 1.0)])])])
    assert 2 == len(_drawn(document)[0])


@pytest.mark.parametrize(
    ("panels", "why"),
    [
        ([], "nothing to draw"),
        ([Panel("", [Line("", [])])], "nothing to draw"),
        ([Panel("", [Line("", [(0.0, float("nan"))])])], "not finite"),
        ([Panel("", [Line("", [(float("inf"), 0.0)])])], "not finite"),
    ],
)
def test_what_can_not_be_drawn_is_refused(panels: list[Panel], why: str) -> None:
    """A picture would be empty or no SVG."""
    with pytest.raises(ValueError, match=why):
        svg("", "", panels)


@pytest.mark.parametrize(
    ("least", "expected"),
    [(0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (2.0, 2.0), (2.1, 5.0), (5.1, 10.0), (700.0, 1000.0)],
)
def test_steps_are_round(least: float, expected: float) -> None:
    """They are 1, 2 or 5 times a power of ten, and none is skipped to rounding."""
    assert pytest.approx(expected) == round_step(least)


def test_a_line_of_zeros_has_an_axis() -> None:
    """A single point has one, too."""
    ((point,),) = _drawn(svg("", "s", [Panel("", [Line("", [(3.0, 0.0)])])]))
    assert pytest.approx(point[1]) == _height_of(
        svg("", "s", [Panel("", [Line("", [(3.0, 0.0)])])]), "0"
    )
