"""When client quotas fall before a limit, and by how much they may rise."""

from dataclasses import replace

import pytest

from sidecar.throttle.approach import LEAD_BY_FILL_S, LEAD_S, Approach, approach
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.fill_rates import FillRates
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.quota_steps import RISE
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import reading, remembering, whole

LIMIT = 1_000
VALIDITY_S = 300.0


DECIDER = VolumeLimit(Rules(MinAvailableBytes(LIMIT), VALIDITY_S), 1.0)


def filling(*rates: int, room: int = 1_000) -> tuple[Memory, FillRates]:
    """Volumes /d0, /d1, ... of broker 1, each with ``room`` above its limit at 10 s."""
    observed, fills = [], FillRates()
    for at in range(11):
        left = {f"/d{key}": LIMIT + room + rate * (10 - at) for key, rate in enumerate(rates)}
        observed.append(whole(float(at), [reading(1, float(at), left, total=10**6)]))
        fills.note(remembering(DECIDER)(*observed), float(at))
    return remembering(DECIDER)(*observed), fills


def found(known: tuple[Memory, FillRates], now: float = 10.0, lead_s: float = LEAD_S) -> Approach:
    memory, fills = known
    return approach(memory.valid_volumes(VALIDITY_S, now), fills, now, lead_s)


def test_the_volume_that_allows_least_counts() -> None:
    """That is not one with as much above its limit that fills more slowly, or not at all."""
    nearest = found(filling(0, 5, 20, -30))
    assert ((1, "/d2"), 1_000.0, 20.0) == (nearest.log_dir, nearest.headroom, nearest.fill)
    assert "/d2 of broker 1 has 1.0 kB above it and fills by 20 B a second" == str(nearest)
    still = replace(nearest, fill=0.0)
    assert "/d2 of broker 1 has 1.0 kB above it" == str(still)


def test_a_broker_that_nobody_writes_to_allows_everything() -> None:
    """So does one whose rate is not known yet."""
    memory, _ = filling(20, room=1)
    assert frozenset() == Approach().brokers
    for known in (filling(0, room=0), filling(), (memory, FillRates())):
        nearest = found(known)
        assert (RISE, False, 0.0) == (nearest.rise, nearest.falls, nearest.fill)
        assert (None, frozenset()) == (nearest.log_dir, nearest.brokers)


@pytest.mark.parametrize("lead_s", [LEAD_S, LEAD_BY_FILL_S])
def test_quotas_fall_within_the_lead(lead_s: float) -> None:
    """A second further away they stay."""
    rate = 10
    assert found(filling(rate, room=int(rate * lead_s)), lead_s=lead_s).falls
    beyond = found(filling(rate, room=int(rate * (lead_s + 1))), lead_s=lead_s)
    assert (False, 1.0) == (beyond.falls, beyond.rise)


@pytest.mark.parametrize(
    ("room", "rise"), [(20, 1.0), (21, 1.0), (30, 1.5), (40, 2.0), (800, RISE)]
)
def test_quotas_rise_by_as_much_as_there_is_room_for(room: int, rise: float) -> None:
    """Room for so many bytes/s during the lead, of which 20 are used, as much as at most."""
    nearest = found(filling(20, room=int(room * LEAD_S)))
    assert pytest.approx(rise) == nearest.rise
    assert frozenset({1} if rise < RISE else ()) == nearest.brokers


def test_a_copied_file_does_not_hold_quotas_down() -> None:
    """It filled the volume 100 times as fast as it may fill now, and then it stood still."""
    observed, rates = [], FillRates()
    for at in range(0, 60, 2):
        left = LIMIT + 1_000 + 1_250 * max(0, 10 - at)
        observed.append(whole(float(at), [reading(1, float(at), {"/d": left}, total=10**6)]))
        rates.note(remembering(DECIDER)(*observed), float(at))
    nearest = found((remembering(DECIDER)(*observed), rates), 58.0)
    assert (False, 1.25) == (nearest.falls, nearest.rise)


def test_time_counts_as_filled_while_nobody_sees_the_volume() -> None:
    """After the validity the reading counts no longer, and quotas may rise."""
    memory = filling(10, room=2_000)
    assert [False, True, True, False] == [
        found(memory, 10.0 + later).falls for later in (0, 130, VALIDITY_S, VALIDITY_S + 1)
    ]


def test_a_volume_at_its_limit_is_near() -> None:
    """Also one that does not fill, while another volume of its broker does."""
    assert found(filling(0, -1, 1, room=0)).falls
