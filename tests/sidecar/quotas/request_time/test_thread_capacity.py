"""A broker's capacity in percent of one thread, and brokers that differ."""

import pytest

from sidecar.quotas.request_time.thread_capacity import (
    BrokerCapacity,
    Difference,
    differs,
    smallest,
)


@pytest.mark.parametrize(
    ("io_threads", "network_threads", "percent", "io_percent"),
    [(8, 3, 1100, 800), (32, 32, 6400, 3200), (1, 1, 200, 100)],
)
def test_capacity_is_all_threads_whole_time(
    io_threads: int, network_threads: int, percent: int, io_percent: int
) -> None:
    """Each thread is 100 %; network threads count only by the KIP's form that was adopted."""
    capacity = BrokerCapacity(30, io_threads, network_threads, 1)
    assert (percent, io_percent) == (capacity.percent, capacity.io_percent)


def test_window_does_not_change_the_capacity() -> None:
    """A longer window has more seconds and not more percent."""
    assert BrokerCapacity(1, 8, 3, 1).percent == BrokerCapacity(1, 8, 3, 10).percent


@pytest.mark.parametrize(
    ("threads", "setting"),
    [
        ((0, 3, 1), "num.io.threads"),
        ((8, 0, 1), "num.network.threads"),
        ((8, 3, -1), "quota.window.size.seconds"),
    ],
)
def test_nothing_is_refused(threads: tuple[int, int, int], setting: str) -> None:
    """Settings that no broker runs with are refused by broker and setting."""
    with pytest.raises(ValueError, match=f"broker 7: {setting} is "):
        BrokerCapacity(7, *threads)


def test_alike_brokers_do_not_differ() -> None:
    """For brokers of the same settings, one broker and none, nothing is reported."""
    assert () == differs([BrokerCapacity(1, 8, 3, 1), BrokerCapacity(2, 8, 3, 1)])
    assert () == differs([BrokerCapacity(1, 8, 3, 1)])
    assert () == differs([])


def test_differences_are_reported_by_setting_and_broker() -> None:
    """Each setting says which brokers have which value, in order, whatever order they came in."""
    brokers = [BrokerCapacity(3, 8, 3, 1), BrokerCapacity(1, 16, 3, 2), BrokerCapacity(2, 8, 3, 1)]
    io_threads, window = differs(brokers)
    assert Difference("num.io.threads", {8: (2, 3), 16: (1,)}) == io_threads
    assert "num.io.threads differs: 8 on 2, 3; 16 on 1" == str(io_threads)
    assert Difference("quota.window.size.seconds", {1: (2, 3), 2: (1,)}) == window


def test_swapped_threads_differ_though_the_capacity_is_the_same() -> None:
    """8 + 3 and 3 + 8 have the same percent, and are reported all the same."""
    brokers = [BrokerCapacity(1, 8, 3, 1), BrokerCapacity(2, 3, 8, 1)]
    assert brokers[0].percent == brokers[1].percent
    assert ["num.io.threads", "num.network.threads"] == [each.setting for each in differs(brokers)]


def test_plans_fit_the_smallest_broker() -> None:
    """A plan is for the smallest of brokers that differ, and for the first of equal ones by id."""
    brokers = [BrokerCapacity(1, 16, 3, 1), BrokerCapacity(3, 8, 3, 1), BrokerCapacity(2, 3, 8, 1)]
    assert 2 == smallest(brokers).broker_id
    with pytest.raises(ValueError, match=r"empty|arg"):
        smallest([])
