"""The sampled rate; that all its numbers are Kafka's is shown in tests/integration."""

import pytest

from sidecar.quotas.rate import QuotaWindow, Rate

WINDOW = QuotaWindow()


def recorded(*values: tuple[float, int], window: QuotaWindow = WINDOW) -> Rate:
    """A rate after values (how much, ms)."""
    rate = Rate(window)
    for value, now_ms in values:
        rate.record(value, now_ms)
    return rate


def test_docstring_example() -> None:
    """1,000 at once count over 10 s, then over what has passed, and are dropped after 11 s."""
    rate = recorded((1000, 0))
    assert 100.0 == rate.measure(0)
    assert 1000 / 10.999 == rate.measure(999)
    assert 1000 / 10.999 == rate.measure(10_999)
    assert 0.0 == rate.measure(11_000)


def test_kafka_s_defaults() -> None:
    """quota.window.num 11 and quota.window.size.seconds 1, together 11 s."""
    assert (11, 1000, 11_000) == (WINDOW.samples, WINDOW.window_ms, WINDOW.span_ms)


@pytest.mark.parametrize(("samples", "window_ms"), [(0, 1000), (11, 0), (-1, 1000)])
def test_a_window_of_nothing_is_refused(samples: int, window_ms: int) -> None:
    """A rate over no time is undefined."""
    with pytest.raises(ValueError, match=r"^a quota window is at least 1 sample of 1 ms$"):
        QuotaWindow(samples, window_ms)


def test_nothing_recorded_is_no_rate() -> None:
    """Initially the rate is 0, over all windows but the one that has just begun."""
    rate = Rate(WINDOW)
    assert (0.0, 10_000) == (rate.measure(5), rate.window_ms(5))


def test_one_sample_is_over_a_millisecond_at_least() -> None:
    """With no earlier window to assume, no time has passed at first; it's taken for 1 ms."""
    rate = recorded((7, 0), window=QuotaWindow(1, 1000))
    assert (1, 7000.0) == (rate.window_ms(0), rate.measure(0))


def test_a_steady_rate_is_reported_as_it_is() -> None:
    """100 every 100 ms are 1,000 per second, over 10 to 11 s, once the windows are full."""
    rate = Rate(WINDOW)
    for now_ms in range(0, 60_000, 100):
        rate.record(100, now_ms)
        if now_ms > 12_000:
            assert pytest.approx(1000, rel=0.011) == rate.measure(now_ms)
            assert 10_000 <= rate.window_ms(now_ms) <= 12_000


def test_the_oldest_sample_may_reach_into_the_windows() -> None:
    """A sample counts until its last value is old: the time is up to a window longer."""
    rate = recorded((10, 0), (10, 999), *((0, second * 1000) for second in range(1, 12)))
    assert (11_998, 20 / 11.998) == (rate.window_ms(11_998), rate.measure(11_998))
    assert 0.0 == rate.measure(11_999)


def test_long_idleness_forgets_all() -> None:
    """After hours only what comes then counts."""
    rate = recorded((1e9, 0), (50, 36_000_000))
    assert 5.0 == rate.measure(36_000_000)
    assert 10_000 == rate.window_ms(72_000_000)


def test_a_negative_value_takes_back() -> None:
    """Brokers do so for a fetch that they then throttle."""
    rate = recorded((500, 0), (-200, 10))
    assert 300 / 10.01 == rate.measure(10)


def test_time_that_goes_back_loses_nothing() -> None:
    """Samples that lie ahead count, and missing windows are added."""
    rate = recorded((100, 5000), (100, 2500))
    assert (200 / 9.5, 9500) == (rate.measure(2500), rate.window_ms(2500))


def test_a_sample_is_dropped_by_its_last_value_though_time_went_back() -> None:
    """It was opened and observed at 5 s, and then had its last value at 0."""
    rate = recorded((100, 5000))
    assert 10.0 == rate.measure(5000)
    rate.record(50, 0)
    assert (150 / 10.999, 0.0) == (rate.measure(10_999), rate.measure(11_000))


def test_one_window_is_not_over_yet() -> None:
    """The tenth has begun: what is left of it counts as if it had been seen."""
    rate = recorded(*((1, second * 1000) for second in range(10)))
    assert (10_500, 10 / 10.5) == (rate.window_ms(9500), rate.measure(9500))


def test_one_sample_more_than_windows_is_retained() -> None:
    """The thirteenth takes the place of the first, however old that one is by the clock."""
    rate = recorded(*((1, second * 1000) for second in range(13)))
    assert 1.2 == rate.measure(0)


@pytest.mark.parametrize(
    ("ahead_ms", "window_ms"),
    [
        ((2**31 - 11) * 1000, 10_000),
        ((2**31 - 10) * 1000, 1),
        (3_155_760_000_000, 1),
        (2**32 * 1000, 1),
    ],
)
def test_a_clock_that_goes_back_68_years(ahead_ms: int, window_ms: int) -> None:
    """So many windows are missing that Kafka's int overflows: the rate is over 1 ms."""
    rate = recorded((100, ahead_ms))
    assert (window_ms, 100_000 / window_ms) == (rate.window_ms(0), rate.measure(0))
