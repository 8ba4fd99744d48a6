"""The stop line that is recommended: what it costs, in bytes, until brokers act."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Memory, VolumeState
from sidecar.throttle.recommended_stop_line import RecommendedStopLine, recommended_stop_line
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing
from tests.sidecar.throttle.build import reading, whole

MB, GB, TB = 10**6, 10**9, 10**12
SETTING = "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES"


def volumes(
    limit: Limit, *totals: int, filling: float = 0.0, offline: bool = False
) -> list[VolumeState]:
    """One volume a broker, half full; the last one fills by so many bytes a second."""
    rules = VolumeLimit(Rules(limit, 300.0), 1.0)
    memory = Memory()
    for at in (0.0, 10.0):
        answers = []
        for number, total in enumerate(totals):
            last = number == len(totals) - 1
            free = total // 2 - (int(filling * at) if last else 0)
            answers.append(reading(number, at, {"/d": free}, total=total))
        memory = rules.fold(memory, whole(at, answers))
    if offline:
        answers = [reading(number, 20.0, offline=["/d"]) for number in range(len(totals))]
        memory = rules.fold(memory, whole(20.0, answers))
    return list(memory.volumes())


def recommended(limit: Limit, *totals: int, reaction_s: float = 79.0) -> RecommendedStopLine:
    found = recommended_stop_line(limit, volumes(limit, *totals), reaction_s)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("limit", "totals", "line", "room_bytes"),
    [
        # Half of the limit.
        (MinAvailableBytes(10 * GB), (TB,), MinAvailableBytes(5 * GB), 5 * GB),
        (MinAvailableRatio(0.1), (TB,), MinAvailableRatio(0.05), 50 * GB),
        # On the smallest volume: what half leaves there.
        (MinAvailableRatio(0.1), (TB, 100 * GB), MinAvailableRatio(0.05), 5 * GB),
        # 1.25 GB/s for 79 s are 98.75 GB; two digits, rounded down.
        (MinAvailableBytes(TB), (10 * TB,), MinAvailableBytes(98 * GB), 98 * GB),
        (MinAvailableRatio(0.2), (10 * TB,), MinAvailableRatio(0.0098), 98 * GB),
        # So that the smallest of them has that much.
        (MinAvailableRatio(0.2), (10 * TB, 2 * TB), MinAvailableRatio(0.049), 98 * GB),
    ],
)
def test_what_is_recommended(
    limit: Limit, totals: tuple[int, ...], line: Limit, room_bytes: float
) -> None:
    """Of the limit's own type, half of it or what 10 Gbit/s bring in the reaction time."""
    found = recommended(limit, *totals)
    assert line == found.line
    assert pytest.approx(room_bytes) == found.room_bytes
    assert pytest.approx(room_bytes / 79.0) == found.bytes_per_second
    assert found.too_fast is None


@given(
    limit=st.builds(MinAvailableBytes, st.integers(2, 10**15))
    | st.builds(MinAvailableRatio, st.floats(0.0001, 0.9999)),
    totals=st.lists(st.integers(1, 10**16), min_size=1, max_size=3),
    reaction_s=st.floats(1.0, 1e5),
)
def test_it_is_a_line_that_settings_take(
    limit: Limit, totals: list[int], reaction_s: float
) -> None:
    """Below the limit, above nothing, by at most half, to nine tenths of what was meant."""
    found = recommended_stop_line(limit, volumes(limit, *totals), reaction_s)
    if found is None:
        assert isinstance(limit, MinAvailableBytes)
        return
    least = min(state.verdict.threshold_bytes for state in volumes(limit, *totals))
    meant = min(0.5 * limit.value, limit.value * 1.25e9 * reaction_s / least)
    assert 0 < found.line.value <= meant * (1 + 1e-9)
    if not isinstance(limit, MinAvailableBytes) or meant >= 10:
        assert 0.9 * meant <= found.line.value


def test_a_volume_that_fills_faster_than_there_is_room_needs_a_higher_limit() -> None:
    """At 5 GB for 79 s that is 63.3 MB/s; the limit has to pay for the rate twice."""
    limit = MinAvailableBytes(10 * GB)
    slow, fast = (volumes(limit, TB, TB, filling=rate * MB) for rate in (63, 64))
    found = recommended_stop_line(limit, slow, 79.0)
    assert found is not None
    assert found.too_fast is None
    found = recommended_stop_line(limit, fast, 79.0)
    assert found is not None
    assert found.too_fast is fast[1]
    assert [
        f"No stop line is set. Recommended: {SETTING}=5000000000. At this line, 5.0 GB, brokers "
        "with the authorizer refuse all producers. The rest has room for 63.3 MB/s on a volume "
        "during the 79 s that brokers may take to act.",
        "Broker 1 /d fills by 64.0 MB/s. A limit of 10.1 GB would leave room for that.",
    ] == found.sentences(SETTING)


def test_what_an_offline_volume_did_is_no_rate() -> None:
    """Nothing is written there."""
    limit = MinAvailableBytes(10 * GB)
    found = recommended_stop_line(limit, volumes(limit, TB, filling=64 * MB, offline=True), 79.0)
    assert found is not None
    assert found.too_fast is None


def test_without_volumes_nothing_is_recommended() -> None:
    """Nor where every volume has no size, or no whole byte is below the limit.

    Half of a limit of 10 GB is more than a volume of 4 GB ever has available.
    """
    ratio = MinAvailableRatio(0.1)
    assert recommended_stop_line(ratio, [], 79.0) is None
    assert recommended_stop_line(ratio, volumes(ratio, 0), 79.0) is None
    byte = MinAvailableBytes(1)
    assert recommended_stop_line(byte, volumes(byte, TB), 79.0) is None
    large = MinAvailableBytes(10 * GB)
    assert recommended_stop_line(large, volumes(large, TB, 4 * GB), 79.0) is None


@pytest.mark.parametrize(("interval_s", "expected"), [(10.0, 29.0), (60.0, 79.0), (1.0, 12.0)])
def test_the_reaction_time(interval_s: float, expected: float) -> None:
    """Interval, deadline, two long polls, two slow answers: docs/reliability.md has the first."""
    assert expected == Timing(interval_s, 1.0).reaction_s
