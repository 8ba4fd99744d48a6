"""When the first volume will be full: only volumes that are seen, and counted from the reading."""

import pytest

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.fill import WINDOW_S
from sidecar.throttle.full import soonest_full_at
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.volumes import Observation
from tests.sidecar.throttle.build import partial, reading, remembering, whole

VALIDITY_S = 300.0
FACTORS = VolumeLimit(Rules(MinAvailableBytes(10), VALIDITY_S), 1.0)
after = remembering(FACTORS)


def full_at(memory: Memory, now: float, window_s: float = WINDOW_S) -> float | None:
    """When the first volume with a valid reading will be full."""
    return soonest_full_at(memory.valid_volumes(VALIDITY_S, now), window_s)


def test_docstring_example() -> None:
    """400 bytes at 20 bytes/s, read at 10 s: full at 30 s, until the reading is 300 s old."""
    memory = after(
        whole(0.0, [reading(1, 0.0, {"/d": 600}, total=1000)]),
        whole(10.0, [reading(1, 10.0, {"/d": 400}, total=1000)]),
    )
    moments = [10.0, 29.0, 31.0, 310.0, 310.1]
    assert [30.0, 30.0, 30.0, 30.0, None] == [full_at(memory, now) for now in moments]


def test_nothing_fills() -> None:
    """No volume, no known rate, a steady volume and one that empties have no time."""
    assert full_at(Memory(), 0.0) is None
    first = whole(0.0, [reading(1, 0.0, {"/a": 50, "/b": 50})])
    assert full_at(after(first), 0.0) is None
    second = whole(10.0, [reading(1, 10.0, {"/a": 50, "/b": 60})])
    assert full_at(after(first, second), 10.0) is None


def test_no_byte_available() -> None:
    """A volume without one is full since it was read, whether a rate is known or not."""
    assert 5.0 == full_at(after(whole(5.0, [reading(1, 5.0, {"/d": 0})])), 7.0)


def test_the_first_of_several() -> None:
    """The time is that of the volume that will be full first, also when it violates the limit."""
    memory = after(
        whole(0.0, [reading(1, 0.0, {"/a": 90, "/b": 18}), reading(2, 0.0, {"/a": 90})]),
        whole(10.0, [reading(1, 10.0, {"/a": 80, "/b": 8}), reading(2, 10.0, {"/a": 50})]),
    )
    # 80 bytes at 1/s are full at 90 s, 8 at 1/s at 18 s, 50 at 4/s at 22.5 s.
    assert 18.0 == full_at(memory, 10.0)


def test_the_window_of_the_rate() -> None:
    """Read each second, 60 bytes come in one: over 5 s that is 12 a second, over 20 s 3.

    The quota callback asks for more than 5 s during a throttle, and only then is more known.
    """
    memory = Memory(override=Override(0.0, "test", 0.0, 1000.0))
    for second in range(31):
        used = 60 if second >= 27 else 0
        seen = reading(1, float(second), {"/d": 960 - used}, total=1000)
        memory = FACTORS.fold(memory, whole(float(second), [seen]))
    assert 30.0 + 900 / 12 == full_at(memory, 30.0)
    assert 30.0 + 900 / (60 / 22) == full_at(memory, 30.0, window_s=20.0)


@pytest.mark.parametrize(
    "last",
    [
        whole(11.0, [reading(1, 11.0, offline=["/d"])]),
        whole(11.0, [reading(2, 11.0, {"/d": 50})], fenced=[1]),
        whole(11.0, [reading(2, 11.0, {"/d": 50})], fenced=None),
        whole(11.0, [reading(1, 11.0, {"/d": 41})]),
    ],
    ids=["offline", "fenced", "departed", "freed"],
)
def test_what_does_not_fill_any_more(last: Observation) -> None:
    """The volume is offline, or has space freed, or its broker has left the cluster."""
    before = [whole(0.0, [reading(1, 0.0, {"/d": 40})]), whole(10.0, [reading(1, 10.0, {"/d": 5})])]
    assert full_at(after(*before), 10.0) is not None
    assert full_at(after(*before, last), 11.0) is None


def test_a_broker_that_fell_silent() -> None:
    """Its last rate counts for the validity, while others are seen as they are."""
    seen = [reading(1, 0.0, {"/d": 40}), reading(2, 0.0, {"/d": 90})]
    filled = [reading(1, 10.0, {"/d": 20}), reading(2, 10.0, {"/d": 80})]
    memory = after(whole(0.0, seen), whole(10.0, filled))
    memory = FACTORS.fold(memory, partial(11.0, silent=[1]))
    assert 20.0 == full_at(memory, 12.0)
    memory = FACTORS.fold(memory, whole(400.0, [reading(2, 400.0, {"/d": 41})], silent=[1]))
    # Broker 2: 39 bytes in 390 s, 41 left.
    assert pytest.approx(400.0 + 410.0) == full_at(memory, 400.0)
