"""The recommended values, and their arithmetic."""

from dataclasses import replace

import pytest

from sidecar.cli.doctor.recommendation import recommendation
from sidecar.throttle.limits import MinAvailableRatio
from sidecar.throttle.rules import Rules
from tests.sidecar.cli.doctor.installation import FACTOR, GB, MB, WHOLE, sidecar, volume

PREFIX = "SIDECAR_STORAGE_PER_VOLUME_"


def test_the_example_of_the_module() -> None:
    """100 MB/s, 60 s and 8 h: 6 GB + 28.8 GB. The numbers are in the sentences."""
    facts = replace(WHOLE, volumes=(volume(0, rate=100 * MB), volume(1, rate=3 * MB)))
    found = recommendation(facts)
    assert found is not None
    assert {
        f"{PREFIX}LIMIT_MIN_AVAILABLE_BYTES": "35000000000",
        f"{PREFIX}STOP_MIN_AVAILABLE_BYTES": "17000000000",
        f"{PREFIX}SOFT_LIMIT_MIN_AVAILABLE_BYTES": "220000000000",
    } == found.settings
    assert "100.0 MB/s x 60 s until the next poll + 1% of it x 8 h" in found.lines[1]
    assert "6.0 GB + 28.8 GB = 34.8 GB; at least 2 x 100.0 MB/s x 79 s" in found.lines[1]
    assert "It needs 100.0 MB/s x 79 s = 7.9 GB" in found.lines[2]


def test_a_short_absence_leaves_room_for_the_stop_line() -> None:
    """Twice the reaction time decides then, and the line in the middle is not rounded down."""
    facts = replace(WHOLE, volumes=(volume(0, rate=100 * MB),), away_s=60.0)
    found = recommendation(facts)
    assert found is not None
    assert ["16000000000", "7900000000"] == list(found.settings.values())[:2]


def test_a_ratio_is_of_the_volume_that_needs_the_largest() -> None:
    """A small volume that fills more slowly can need a larger share."""
    small = replace(volume(1, 90 * GB, 20 * MB), total_bytes=100 * GB)
    rules = Rules(MinAvailableRatio(0.1), 300.0)
    found = recommendation(replace(WHOLE, rules=rules, volumes=(volume(0), small)))
    assert found is not None
    assert "0.07" == found.settings[f"{PREFIX}LIMIT_MIN_AVAILABLE_RATIO"]
    assert found.lines[0].startswith("By the volume that fills fastest, broker 1 /data: 20.0 MB/s")


@pytest.mark.parametrize("total", [1000 * GB, 3000 * GB, 7300 * GB])
def test_a_stop_line_leaves_room_until_brokers_act(total: int) -> None:
    """As a ratio too, where two digits can be less room than two digits in bytes."""
    rules = Rules(MinAvailableRatio(0.1), 300.0)
    for rate in range(50 * MB, 150 * MB, MB):
        fills = replace(volume(0, rate=rate), total_bytes=total)
        found = recommendation(replace(WHOLE, rules=rules, volumes=(fills,), away_s=60.0))
        assert found is not None
        stop = float(found.settings[f"{PREFIX}STOP_MIN_AVAILABLE_RATIO"])
        assert stop * total >= rate * WHOLE.timing.reaction_s - 1


@pytest.mark.parametrize("limit", [None, MinAvailableRatio(0.1)])
def test_no_limit_is_recommended_that_a_volume_can_not_have(
    limit: MinAvailableRatio | None,
) -> None:
    """It would throttle for good, or the settings would refuse it."""
    rules = WHOLE.rules if limit is None else Rules(limit, 300.0)
    small = replace(volume(0, 18 * GB, 100 * MB), total_bytes=20 * GB)
    found = recommendation(replace(WHOLE, rules=rules, volumes=(small, volume(1))))
    assert found is not None
    assert {} == found.settings
    assert "No limit fits: broker 0 /data has 20.0 GB, and 34.8 GB are needed" in found.lines[-1]
    assert "(--away)" in found.lines[-1]


def test_a_volume_without_room_gets_the_shortest_soft_limit_or_none() -> None:
    """Two minutes in place of half an hour. A limit of most of the volume is pointed out."""
    found = recommendation(replace(WHOLE, volumes=(volume(0, 960 * GB, 2 * GB),)))
    assert found is not None
    assert "2.0 GB/s x 120 s" in found.lines[3]
    assert "That limit is 70% of the volume: come sooner (--away)" in found.lines[4]
    found = recommendation(replace(WHOLE, volumes=(volume(0, 900 * GB, 2 * GB),)))
    assert found is not None
    assert ["LIMIT", "STOP"] == [
        each.removeprefix(PREFIX).partition("_MIN")[0] for each in found.settings
    ]


def test_a_rate_of_a_moment_is_called_so_and_one_of_a_throttle_shows_nothing() -> None:
    """A throttle hides how fast the volume filled: a limit by that rate would be too low."""
    now = replace(volume(0), rate_by="the sidecar, now")
    found = recommendation(replace(WHOLE, volumes=(now,)))
    assert found is not None
    assert found.lines[0].endswith("Also run this command again at the busiest time.")
    throttled = (sidecar(0, factor=FACTOR | {"factor": 0.0}),)
    assert recommendation(replace(WHOLE, volumes=(now,), sidecars=throttled)) is None
    found = recommendation(replace(WHOLE, sidecars=throttled))
    assert found is not None
    assert found.lines[0].endswith("by the history of up to 7 days.")


@pytest.mark.parametrize("rate", [None, 0.0, -5.0])
def test_nothing_is_recommended_without_a_rate(rate: float | None) -> None:
    """A volume that does not fill shows nothing."""
    assert recommendation(replace(WHOLE, volumes=(volume(0, rate=rate),))) is None
