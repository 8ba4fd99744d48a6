"""The checks of ``demo-pipeline``: what passes and what does not."""

import pytest

from kafka_lab.pipeline.checks import (
    Amount,
    Excess,
    Job,
    Wait,
    Waits,
    advice_checks,
    doubled_checks,
    excess_check,
    replay_checks,
    usage_checks,
)

ALICE = ("produce", "alice", "etl")


@pytest.mark.parametrize(
    ("seen", "passes"),
    [
        (Amount(6, 18_000_732.0), True),
        (Amount(6, 17_830_000.0), True),
        (Amount(6, 17_810_000.0), False),
        (Amount(5, 18_000_732.0), False),
    ],
)
def test_usage_is_what_was_sent(seen: Amount, passes: bool) -> None:
    """Requests are counted to the last one, bytes within 1 %."""
    (check,) = usage_checks({ALICE: Amount(6, 18_001_457.0)}, {ALICE: seen})
    assert passes == check.holds


def test_a_client_that_is_missing_is_reported() -> None:
    """It has no usage at all."""
    (check,) = usage_checks({ALICE: Amount(6, 100.0)}, {})
    assert (False, "0 requests, 0 bytes") == (check.holds, check.seen)


@pytest.mark.parametrize(
    ("actual_ms", "predicted_ms", "near"),
    [
        (11_907, 11_900, True),
        (11_907, 11_312, True),
        (11_907, 11_311, False),
        (0, 50, True),
        (0, 51, False),
        (100, 51, True),
        (100, 0, False),
    ],
)
def test_a_wait_is_near(actual_ms: int, predicted_ms: int, near: bool) -> None:
    """Two waits differ by 5 % or 50 ms at most; if one side has none, by a tick of the clock."""
    assert near == Wait(actual_ms, predicted_ms).is_near


def test_nineteen_of_twenty_are_enough() -> None:
    """Unthrottled clients are not counted, or thousands of them would hide a bad one."""
    good, bad, free = Wait(1000, 1000), Wait(1000, 900), Wait(0, 0)
    assert [True, True] == [each.holds for each in replay_checks([good] * 19 + [bad])]
    assert [False, True] == [
        each.holds for each in replay_checks([good] * 18 + [bad] + [free] * 99)
    ]
    assert [False, True] == [each.holds for each in replay_checks([free])]


def test_the_total_may_be_off_by_a_twentieth() -> None:
    """The total's check fails although each client's wait is near."""
    off = [Wait(200, 250)] * 20
    assert [True, False] == [each.holds for each in replay_checks(off)]


def test_doubled_quotas_do_what_was_said() -> None:
    """The same number of requests is throttled, each wait within half a second."""
    said = {"user=alice": Waits(2, 1309)}
    assert [True] == [each.holds for each in doubled_checks(said, {"user=alice": Waits(2, 2309)})]
    assert [False] == [each.holds for each in doubled_checks(said, {"user=alice": Waits(2, 2310)})]
    assert [False] == [each.holds for each in doubled_checks(said, {"user=alice": Waits(3, 1309)})]
    assert [False] == [each.holds for each in doubled_checks({}, {"user=bob": Waits(1, 60)})]


@pytest.mark.parametrize(
    ("job", "pass_"),
    [
        (Job(0, 0.05, 6.0, 6.3), [True, True]),
        (Job(0, 0.051, 6.0, 6.31), [False, False]),
        (Job(2000, 2.2, 6.0, 5.9), [True, True]),
        (Job(2000, 2.21, 6.0, 6.0), [False, True]),
    ],
)
def test_advice_costs_no_tenant_more_than_it_says(job: Job, pass_: list[bool]) -> None:
    """A wait may be a tenth longer than predicted, and a job a twentieth longer than before."""
    assert pass_ == [check.holds for check in advice_checks({"shop": job})]


@pytest.mark.parametrize(("took_s", "passes"), [(39.0, True), (38.9, False)])
def test_too_much_traffic_has_its_quota(took_s: float, passes: bool) -> None:
    """50 MB under 1 MB/s take 39 s, since a window of 11 s takes what comes at once."""
    assert passes == excess_check("shop", Excess(1e6, 50e6, took_s)).holds
