"""The table has both arms side by side, and what each was claimed."""

from tests.stop_line.course import Arm, Course, Figures, Look, Sent
from tests.stop_line.made import BOUND, MB
from tests.stop_line.table import report

REFUSED = {"RefusedNewConnections": 1200, "RefusedBelowStopLine": 34, "RefusedAfterRelease": 5}


def course(arm: Arm, *looks: Look) -> Course:
    """Looks of a line of 100 MB, with figures."""
    made = Course(arm, 60.0, 150 * MB, 100 * MB, BOUND, list(looks))
    made.sent = [Sent("Java", 2e6, 3 * MB, 4)]
    return made


def test_two_arms_side_by_side() -> None:
    """The one kept the volume, the other did not."""
    kept = course(
        Arm.AUTHORIZER,
        Look(1.0, 120 * MB, lives=True),
        Look(2.0, 97 * MB, lives=True),
        Look(9.0, 120 * MB, lives=True),
    )
    kept.figures = [Figures(9.0, 4.0, emergency=False, refused=REFUSED)]
    full = course(Arm.CALLBACK, Look(1.0, 120 * MB, lives=True), Look(61.0, 0, lives=False))
    full.figures = [Figures(40.0, 65.25, emergency=True, refused={})]
    rows = {
        cells[0]: cells[1:]
        for line in report([kept, full]).splitlines()
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 3
    }
    assert ["with the authorizer", "the callback alone"] == rows["what"]
    assert ["3.0 MB, where 15.5 MB may be", "100.0 MB"] == rows["below the stop line, at most"]
    assert "0:09 of 1:00 minutes" == rows["lasted"][0]
    assert "1:01 of 1:00 minutes; full at 1:01; the broker ended at 1:01" == rows["lasted"][1]
    assert ["7 s, at once 7 s at most", "0 s, at once 0 s at most"] == rows["at or below it"]
    assert ["34", "0"] == rows["requests refused: at the stop line"]
    assert ["4.0 s", "65.2 s, longer ones allowed from 0:40 on"] == rows["longest pause"]
    assert ["3.0 MB, 4", "3.0 MB, 4"] == rows["Java: acknowledged, given up"]


def test_claims_are_listed() -> None:
    """Those of pauses alone are fewer."""
    text = report([course(Arm.AUTHORIZER), course(Arm.CALLBACK)])
    assert "NO" in text
    assert 1 == sum(line.startswith("| the callback alone") for line in text.splitlines())
