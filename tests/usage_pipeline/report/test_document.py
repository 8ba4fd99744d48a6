"""The report: one page that stands alone, of whatever is in the tables."""

import re
from datetime import UTC, date, datetime
from html import unescape
from html.parser import HTMLParser

import pytest

from tests.usage_pipeline.report.rows import GB, NOW, forecast, reading, usage
from usage_pipeline.report import ReportError, Row, report

DAY = date(2026, 1, 5)
EVIL = '<script>alert("x")</script>'
VOID = frozenset({"meta", "input"})


class Page(HTMLParser):
    """A page as parsed: its elements, its text, and whether each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def replayed(scenario: str, quota: float | None, throttled: int) -> Row:
    return {
        "dt": DAY,
        "broker": 2,
        "quota_type": "produce",
        "entity": "user=alice",
        "shared_by": "user=alice",
        "algorithm": "rate",
        "scenario": scenario,
        "quota": quota,
        "events": 200,
        "throttled": throttled,
        "throttle_ms_total": 61_000,
        "throttle_ms_max": 900,
        "peak_rate": 3e6,
        "near": 7,
        "over": 5,
        "unknown": 0,
    }


def recommended(entity: str, quota: float | None, refused: str | None) -> Row:
    return {
        "dt": DAY,
        "quota_type": "produce",
        "entity": entity,
        "quota": quota,
        "in_force": 1e6,
        "percentile_rate": 1.5e6,
        "peak_rate": 3e6,
        "throttled_share": None if quota is None else 0.005,
        "throttled_amount_share": None if quota is None else 0.007,
        "throttle_ms_max": None if quota is None else 2_500,
        "events": 200,
        "hours": 2.0,
        "coverage": 0.98,
        "worst": None
        if quota is None
        else [{"at": datetime(2026, 11, 20, 2, tzinfo=UTC), "broker": 3, "throttle_ms": 2_500}],
        "longest_delay_s": None if quota is None else 10.0,
        "decided_by": None if quota is None else "replay",
        "whole_seconds": True,
        "confidence": "low",
        "caveats": None if quota is None else "there are 200 charges: 10,000 for high",
        "refused": refused,
        "share_of_capacity": 0.5,
    }


FULL: dict[str, list[Row]] = {
    "gold_usage_1s": [
        *(usage(second, "alice", 2e6) for second in range(0, 600, 10)),
        *(usage(second, EVIL, 1e3, "request") for second in range(0, 600, 60)),
        *(usage(0, f"user-{at}", 10.0) for at in range(8)),
    ],
    "gold_replay": [
        replayed("in force", 1e6, 90),
        replayed("=500000", 5e5, 150),
        replayed("=2000000", 2e6, 1),
    ],
    "gold_recommendation": [
        recommended("user=alice", 2e6, None),
        recommended(f"user={EVIL}", None, "no candidate"),
    ],
    "gold_disk_forecast": [
        forecast(0, None, None, None, "it shrinks"),
        forecast(1, 30.0, 30.0, None),
        forecast(2, 9.0, 9.0, 12.0),
    ],
    "silver_volume": [reading(48, 400 * GB), reading(24, None), reading(1, 310 * GB)],
    "quarantine": [{"src_file": EVIL, "kind": "torn", "reason": "the end is missing", "lines": 3}],
}


def test_it_stands_alone() -> None:
    """It loads nothing, closes what it opens, and no name in a log becomes an element."""
    page = report(FULL, NOW)
    found = Page(page)
    assert [] == found.open
    assert (1, 4, 5) == (found.count("main"), page.count('class="card"'), found.count("details"))
    assert "<code>throttle-sidecar quotas diff --plan plan.json</code>" in page
    assert {"script": 1, "style": 1} == {tag: found.count(tag) for tag in ("script", "style")}
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in found.elements}
    assert [] == [
        name for _, values in found.elements for name in values if name in {"src", "href"}
    ]
    assert "url(" not in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    policy = [values["content"] for tag, values in found.elements if "http-equiv" in values]
    assert ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"] == policy
    assert any(EVIL in text for text in found.texts)


def test_every_number_is_there() -> None:
    """Usage, replay, recommendation, disks and what couldn't be read have their units.

    2 MB/s are recommended and 1 MB/s stays configured: half of a capacity of 6.
    """
    texts = Page(report(FULL, NOW)).texts
    expected = [
        *("120 MB", "203 kB/s", "at least 100 s of threads", "1.5 s"),
        *("45 %", "1 min 1 s", "900 ms"),
        *("2 MB/s", "0.7 %", "no candidate"),
        "2.5 s on 20 Nov 02:00 on broker 3; queued usage for up to 10 s",
        "a smaller quota throttles too much; there are 200 charges: 10,000 for high",
        "200 charges, 2 h, 98 % covered, whole seconds",
        "capacity of the smallest broker: 6 MB/s",
        *("400 MB/h", "30 h", "9 h", "12 h", "it shrinks"),
        *("3 lines, by file and reason", "2026-01-05 08:00:00 UTC", "4 others"),
        *("configured", "recommended", "full", "limit"),
    ]
    assert [] == [each for each in expected if each not in texts]


def test_plots_are_within_their_frame() -> None:
    """Every line and mark lies within a plot of 720 x 240."""
    page = report(FULL, NOW)
    plots = re.findall(r'<svg viewBox="0 0 720 240".*?</svg>', page, re.DOTALL)
    assert 2 + 1 + 3 == len(plots)
    for plot in plots:
        paths = re.findall(r'class="(?:line|band)[^"]*" d="([^"]*)"', plot)
        points = [
            tuple(map(float, point.split()))
            for path in paths
            for point in re.findall(r"[\d.-]+ [\d.-]+", path)
        ]
        assert points
        assert all(92 <= x <= 706 and 12 <= y <= 214 for x, y in points)


@pytest.mark.parametrize("tables", [{}, {name: [] for name in FULL}])
def test_empty_tables_are_said_to_be(tables: dict[str, list[Row]]) -> None:
    """Each section is there and says that it has nothing."""
    found = Page(report(tables, NOW))
    assert [] == found.open
    expected = ["Recommended quotas", "Usage", "What quotas would do", "Disks"]
    headings = [text for text in found.texts if text in expected]
    assert expected == headings
    assert "No forecast was made: there is no volume history." in found.texts
    assert 0 == found.count("table")
    answers = ["No usage is known.", "No quota was recommended."]
    assert [2, 1] == [found.texts.count(answer) for answer in answers]


def test_what_is_no_time_is_refused() -> None:
    """The message says what is wrong."""
    row = {**usage(0, "alice", 1.0), "window_start": 5}
    with pytest.raises(ReportError, match="where a time should be"):
        report({"gold_usage_1s": [row]}, NOW)


def test_tables_are_sorted_by_value() -> None:
    """A cell has the number that sorts it; an unknown value has none."""
    cells = [values for tag, values in Page(report(FULL, NOW)).elements if tag == "td"]
    numbers = [values["data-n"] for values in cells if "data-n" in values]
    assert "3000000.0" in numbers
    assert any(values.get("class") == "n" and "data-n" not in values for values in cells)


def test_what_is_left_out_is_said_beside_the_search() -> None:
    """500 rows of each quota type are shown, including the group with the smallest quota."""
    made = [
        *(recommended(f"user=u{at}", 1e6 + at, None) for at in range(700)),
        *(recommended(f"user=small-{at}", 1e5, None) for at in range(40)),
        {**recommended("user=reader", 1e6, None), "quota_type": "fetch"},
    ]
    unread = [{**FULL["quarantine"][0], "src_file": f"{at}.log"} for at in range(101)]
    page = report({"gold_recommendation": made, "quarantine": unread}, NOW)
    form = page[page.index("<form") : page.index("</form>")]
    assert [
        "Recommended quotas: 540 of 741 tenants, the largest quotas first, and tenants that share"
        " the smallest; all are in gold_recommendation.",
        "Lines that were not read: 100 of 101 rows, those with the most lines; all are in"
        " quarantine.",
    ] == [unescape(item) for item in re.findall("<li>(.*?)</li>", form)]
    assert 'aria-describedby="left-out"' in form
    names = re.findall('<td data-v="([^"]*)"', page[page.index("Recommended quotas</h2>") :])
    assert 499 == sum(name.startswith("user=u") for name in names)
    assert {"user=u699", "user=u201", "user=small-0", "user=reader"} <= {*names}


def test_where_all_is_in_the_page_nothing_is_said() -> None:
    """The field stands alone."""
    page = report(FULL, NOW)
    assert "left-out" not in page.partition("<form")[2].partition("</form>")[0]


def test_tenants_at_the_smallest_quota_are_one_row() -> None:
    """Three or more tenants share a row, and the search finds each; others have their own rows."""
    small = [recommended(f"user=u{number}", 1e5, None) for number in range(6)]
    small[5] = {**small[5], "in_force": None, "hours": 1.0, "coverage": 0.5, "peak_rate": 4e6}
    for count, rows in ((6, 1 + 2), (2, 2 + 2)):
        made = [
            recommended("user=large", 2e6, None),
            *small[-count:],
            recommended("user=refused", None, "no candidate"),
        ]
        page = report({"gold_recommendation": made}, NOW)
        table = page[page.index("Each tenant") :]
        assert rows == table.partition("</table>")[0].count("<tr>") - 1
    page = report({"gold_recommendation": small}, NOW)
    texts = Page(page).texts
    assert "6 with the smallest: user=u0, user=u1, user=u2 and 3 more" in texts
    assert {"various", "up to 4 MB/s", "1,200 charges, 1 h, 50 % covered, whole seconds"} <= {
        *texts
    }
    also = [values.get("data-also") for _, values in Page(page).elements]
    assert "user=u3 user=u4 user=u5" in also
