"""The first screen: four questions with their answers, and ten rows."""

import re
from html import unescape

import pytest

from tests.usage_pipeline.report.rows import NOW, forecast, usage
from usage_pipeline.report.answers import answers
from usage_pipeline.report.rows import Row


def recommended(
    entity: str,
    quota: float | None = 2e6,
    *,
    in_force: float | None = None,
    peak: float = 1e6,
    share: float | None = 0.005,
    quota_type: str = "produce",
    confidence: str = "high",
) -> Row:
    return {
        "dt": NOW.date(),
        "quota_type": quota_type,
        "entity": entity,
        "quota": quota,
        "in_force": in_force,
        "peak_rate": peak,
        "throttled_share": share,
        "confidence": confidence,
    }


def cards(**tables: list[Row]) -> list[list[str]]:
    """Returns the texts of each card, and of the table."""
    page = answers(tables)
    pieces = [*page.split('<section class="card">')[1:]]
    last, _, table = pieces[-1].partition('<div class="wide"')
    parts = [*pieces[:-1], last, table]
    return [
        [unescape(text.strip()) for text in re.findall(r">([^<]+)<", part) if text.strip()]
        for part in parts
    ]


def test_who_uses_most_is_said_of_each_of_three_types() -> None:
    """The three largest of each, with their rate over the whole time and their share of all."""
    rows = [
        *(usage(second, "bob", 6e6) for second in range(10)),
        *(usage(second, "amy", 3e6) for second in range(10)),
        usage(0, "cat", 9e6),
        usage(0, "dan", 1e6),
        usage(5, "eve", 30.0, "request"),
        usage(5, "eve", 5.0, "producer_ids"),
    ]
    most = cards(gold_usage_1s=rows)[0]
    assert [
        *("Who uses most?", "Produce", "bob", "6 MB/s, 60 % of all", "amy", "3 MB/s, 30 % of all"),
        *("cat", "900 kB/s, 9 % of all", "Request time", "eve", "3 % of a thread, 100 % of all"),
    ] == most


def test_many_together_are_in_no_list() -> None:
    """They count in totals, but none of them is among the first."""
    many = {"user": None, "client_id": None, "others": 7_000}
    rows: list[Row] = [
        *(usage(0, "bob", 1e6, kind) for kind in ("produce", "request")),
        *(
            {**usage(0, "", 3e6, kind), **many, "throttle_ms": 9e9}
            for kind in ("produce", "request")
        ),
    ]
    most, throttled, *_ = cards(gold_usage_1s=rows)
    assert [*("Who uses most?", "Produce", "bob", "1 MB/s, 25 % of all")] == most[:4]
    assert "bob" in throttled
    assert [] == [text for text in (*most, *throttled) if "others" in text]


def test_who_was_throttled_and_would_be() -> None:
    """The tenant with the longest wait comes first; a refused recommendation throttles nobody."""
    rows = [
        usage(0, "bob", 1.0, "request"),
        {**usage(1, "amy", 1.0, "request"), "throttled": 4, "throttle_ms": 90_000},
        {**usage(1, "cat", 1.0, "request"), "throttled": 0, "throttle_ms": 0},
        usage(0, "zoe", 1.0),
    ]
    made = [
        recommended("user=amy", share=0.002),
        recommended("user=bob", share=0.01, quota_type="fetch"),
        recommended("user=cat", share=0.0),
        recommended("user=dan", None, share=0.5),
    ]
    asked, *said = cards(gold_usage_1s=rows, gold_recommendation=made)[1]
    assert "Who was throttled, and who would be?" == asked
    assert [
        *("Was", "amy", "100 % of its requests, 1 min 30 s in total"),
        *("bob", "25 % of its requests, 1.5 s in total"),
        *("Would be, with the recommended quotas", "user=bob, fetch"),
        *("at most 1 % of its charges", "user=amy, produce", "at most 0.2 % of its charges"),
    ] == said
    nobody = cards(gold_usage_1s=[{**usage(0, "bob", 1.0, "request"), "throttled": 0}])[1]
    assert ["Who was throttled, and who would be?", "Nobody was throttled."] == nobody


def test_disks_are_in_the_order_of_their_hours() -> None:
    """Each has its range; volumes that are not expected to reach the limit are counted."""
    rows = [
        forecast(1, 30.0, 40.0, None),
        forecast(2, 9.0, 10.0, 12.0),
        forecast(3, None, None, None),
    ]
    said = cards(gold_disk_forecast=rows)[2]
    assert [
        *(
            "Which disk is full, and when?",
            "At its limit",
            "broker 2 /data",
            "in 10 h (9 h to 12 h)",
        ),
        *(
            "broker 1 /data",
            "in 40 h (30 h or never)",
            "1 volume more: later, or not expected to reach the limit.",
        ),
    ] == said
    page = answers({"gold_disk_forecast": rows})
    assert [("22.5", "7.5"), ("75.0", "25.0")] == re.findall(
        r"left:([\d.]+)%;width:([\d.]+)%", page
    )
    assert ["25.0", "100.0"] == re.findall(r'<b style="left:min\(([\d.]+)%', page)


def test_a_refused_forecast_is_none() -> None:
    """Volumes without a forecast are counted apart, because they may fill at any time."""
    refused = [forecast(broker, None, None, None, "the log dir is offline") for broker in (1, 2)]
    question = "Which disk is full, and when?"
    said = cards(gold_disk_forecast=refused)[2]
    assert [question, "2 volumes: no forecast; the table of disks has the reasons."] == said
    said = cards(gold_disk_forecast=[forecast(3, None, None, None), *refused[:1]])[2]
    assert [
        question,
        "1 volume: not expected to reach the limit.",
        "1 volume: no forecast; the table of disks has the reasons.",
    ] == said
    said = cards(gold_disk_forecast=[forecast(3, 9.0, 10.0, 12.0), *refused[:1]])[2]
    assert "1 volume: no forecast; the table of disks has the reasons." == said[-1]
    assert not any("not expected" in words for words in said)


def test_a_full_disk_is_full_now() -> None:
    """It is first, also if its forecast was refused."""
    rows = [
        forecast(1, 9.0, 10.0, 12.0),
        forecast(2, 0.0, 0.0, 0.0, "the history has 23.0 hours; a forecast needs 24"),
    ]
    said = cards(gold_disk_forecast=rows)[2]
    assert [
        *("Which disk is full, and when?", "At its limit", "broker 2 /data", "now"),
        *("broker 1 /data", "in 10 h (9 h to 12 h)"),
    ] == said


def test_what_to_set_first() -> None:
    """Tenants without a quota come first, then larger shares of the peaks."""
    made = [
        recommended("user=has-another", 3e6, in_force=1e6, peak=6e6),
        recommended("user=large", 2e6, peak=2e6),
        recommended("user=small", 1e6, peak=1e6),
        recommended("user=as-it-should-be", 1e6, in_force=1.04e6, peak=1e6),
        recommended("user=thin", 1e6, confidence="low", peak=0.0),
        recommended("user=refused", None, peak=0.0),
    ]
    *_, first, table = cards(gold_recommendation=made)
    assert [
        *("What to set first?", "Produce", "user=large: 2 MB/s", "20 % of all peaks"),
        *("user=small: 1 MB/s", "10 % of all peaks"),
        *("user=has-another: 3 MB/s", "60 % of all peaks"),
    ] == first
    names = [text for text in table if text.startswith("user=")]
    assert ["user=large", "user=small", "user=has-another"] == names


def test_the_smallest_come_after_all_others_without_a_quota() -> None:
    """This holds whatever the sum of their peaks is."""
    made = [
        *(recommended(f"user=u{number}", 1e5, peak=5e6) for number in range(3)),
        recommended("user=large", 9e6, peak=1e6),
        recommended("user=has-another", 3e6, in_force=1e6, peak=9e6),
    ]
    *_, table = cards(gold_recommendation=made)
    found = [text for text in table if "user=" in text]
    assert ["user=large", "user=has-another"] == [found[0], found[-1]]
    assert found[1].startswith("3 with the smallest")


@pytest.mark.parametrize("count", [10, 13])
def test_ten_rows_are_shown(count: int) -> None:
    """The caption states the number of others."""
    made = [recommended(f"user=u{number}", 2e6 + number) for number in range(count)]
    *_, table = cards(gold_recommendation=made)
    assert 10 == sum(text.startswith("user=") for text in table)
    assert (count == 13) == any("3 more come after" in text for text in table)


def test_tenants_of_the_smallest_quota_are_one() -> None:
    """The row has the sum of their peaks, and the largest throttled share of one of them."""
    made = [
        recommended("user=large", 9e6, peak=2e6),
        *(recommended(f"user=u{number}", 1e5, share=number / 100) for number in range(4)),
        recommended("user=u4", 1e5, in_force=1e6, peak=2e6),
    ]
    *_, first, table = cards(gold_recommendation=made)
    several = "5 with the smallest: user=u0, user=u1, user=u2 and 2 more"
    assert [several + ": 100 kB/s", "75 % of all peaks"] == first[-2:]
    at = table.index(several)
    assert ["Produce", "various", "100 kB/s", "3 %", "75 %"] == table[at + 1 : at + 6]


def test_names_are_text() -> None:
    """This holds for any text from a log."""
    evil = "<script>alert(1)</script>"
    rows = [usage(0, evil, 1.0), usage(0, evil, 1.0, "request")]
    made = [recommended(f"user={evil}")]
    disks = [{**forecast(1, 1.0, 1.0, 2.0), "log_dir": evil}]
    page = answers(
        {"gold_usage_1s": rows, "gold_recommendation": made, "gold_disk_forecast": disks}
    )
    assert "<script" not in page
    assert 6 <= page.count("&lt;script&gt;")
