"""Request time in percent of one thread (KIP-124)."""

import heapq

import pytest

from sidecar.quotas.rate import QuotaWindow
from usage_pipeline.replay.rate_quota import RateQuota
from usage_pipeline.replay.request_percentage import percent

MS = 1_000_000
WINDOW = QuotaWindow()


def request_quota(request_percentage: float, window: QuotaWindow) -> RateQuota:
    """No wait is longer than one window."""
    return RateQuota(request_percentage, window, most_ms=window.window_ms)


def test_alice_may_use_10_ms() -> None:
    """KIP-124: a quota of 1 % of a window of 1 s is 10 ms of it, on all threads together."""
    assert 1.0 == percent(10 * MS)


@pytest.mark.parametrize(("used_ms", "longest_wait_ms"), [(9, 0), (10, 1000), (11, 1000)])
def test_alice_around_her_quota(used_ms: int, longest_wait_ms: int) -> None:
    """9 ms used at each full second never wait; eleven times 10 ms are in 10 s, and do."""
    quota = request_quota(1.0, WINDOW)
    waits = [quota.record(percent(used_ms * MS), second * 1000) for second in range(60)]
    assert longest_wait_ms == max(waits)
    assert 0 == max(waits[:9])


def test_a_wait_is_one_window_at_most() -> None:
    """After KIP-124's stop-the-world pause, 1 s at 0.1 %, the user does not wait for minutes."""
    quota = request_quota(0.1, WINDOW)
    assert 1000 == quota.record(percent(1000 * MS), 0)
    assert 5000 == request_quota(0.1, QuotaWindow(11, 5000)).record(percent(1000 * MS), 0)


def test_network_threads_time_counts_for_the_next_check() -> None:
    """It is recorded when an answer was sent, when it is too late to throttle its client."""
    quota = request_quota(1.0, WINDOW)
    quota.record_unchecked(percent(500 * MS), 0)
    assert 5.0 == quota.rate(0)
    assert 1000 == quota.record(percent(0), 0)


@pytest.mark.slow
@pytest.mark.parametrize(("connections", "request_ms"), [(5, 100), (2, 30), (40, 7)])
def test_the_bound_of_the_kip_is_met_and_reached(connections: int, request_ms: int) -> None:
    """Connections that send whenever they may use C x R of a window, and not more.

    The seconds before the windows are full do not count: the user was idle before them.
    """
    quota = request_quota(1.0, WINDOW)
    done: list[int] = []
    ready = [(request_ms, number) for number in range(connections)]
    while ready[0][0] < 60_000:
        now_ms, number = heapq.heappop(ready)
        done.append(now_ms)
        wait_ms = quota.record(percent(request_ms * MS), now_ms)
        heapq.heappush(ready, (now_ms + wait_ms + request_ms, number))
    used_ms = [
        request_ms * sum(begin < end_ms <= begin + 1000 for end_ms in done)
        for begin in range(20_000, 58_000, 10)
    ]
    # max(quota, C x R), and the quota is 10 ms.
    assert connections * request_ms == max(used_ms)
