"""Lines that do not fit a volume of a size, whatever is available there."""

import pytest

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.memory import Memory
from sidecar.throttle.misfits import misfits, sentences
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import SlopeRules
from tests.sidecar.throttle.build import reading, remembering, whole

LIMIT = MinAvailableBytes(10)


def rules(
    limit: Limit = LIMIT, *, soft_limit: Limit | None = None, stop_line: Limit | None = None
) -> Rules:
    slope = None if soft_limit is None else SlopeRules(soft_limit)
    return Rules(limit, 120.0, stop_line, slope)


def seen(lines: Rules, *, brokers: int = 1, total: int = 100) -> Memory:
    """Volumes with 50 bytes available."""
    readings = [reading(n + 1, 0.0, {"/d": 50}, total=total) for n in range(brokers)]
    return VolumeLimit(lines, 1.0).fold(Memory(), whole(0.0, readings))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (rules(), []),
        (rules(MinAvailableBytes(99)), []),
        (rules(MinAvailableBytes(100)), ["limit"]),
        (rules(MinAvailableBytes(10, 89)), []),
        (rules(MinAvailableBytes(10, 90)), ["release margin"]),
        (rules(MinAvailableBytes(100, 90)), ["limit"]),
        (rules(MinAvailableRatio(0.9, 0.09)), []),
        (rules(MinAvailableRatio(0.9, 0.1)), ["release margin"]),
        (rules(soft_limit=MinAvailableBytes(99)), []),
        (rules(soft_limit=MinAvailableBytes(100)), ["soft limit"]),
        (rules(soft_limit=MinAvailableRatio(0.11)), []),
        (rules(soft_limit=MinAvailableRatio(0.1)), ["soft limit"]),
        (rules(stop_line=MinAvailableRatio(0.09)), []),
        (rules(stop_line=MinAvailableRatio(0.1)), ["stop line"]),
        (
            rules(MinAvailableBytes(200), soft_limit=MinAvailableBytes(300)),
            ["limit", "soft limit"],
        ),
    ],
)
def test_the_line_to_change_is_named(lines: Rules, expected: list[str]) -> None:
    """A volume of 100 bytes; at the boundary a line does not fit."""
    assert expected == [misfit.line for misfit in misfits(seen(lines).volumes(), lines)]


def test_a_margin_that_does_not_fit_never_releases() -> None:
    """The daemon does not cap it; the reason of the decision says why an empty volume throttles."""
    margin = rules(MinAvailableBytes(10, 100))
    factors = VolumeLimit(margin, 1.0)
    full, empty = (whole(at, [reading(1, at, {"/d": free})]) for at, free in ((0.0, 9), (1.0, 100)))
    decision = factors.decide(remembering(factors)(full, empty), 1.0)
    assert 0.0 == decision.factor
    assert decision.reason == (
        "broker 1 /d has 100 B of 100 B available (100.0%), not yet 100 B above the limit of 10 B; "
        "the volume is too small for the release margin, so it is never released"
    )


@pytest.mark.parametrize(("brokers", "more"), [(3, ""), (5, " and 2 more")])
def test_volumes_with_the_same_misfit_share_a_sentence(brokers: int, more: str) -> None:
    """It names three volumes with their sizes, the effect and the remedy."""
    margin = rules(MinAvailableBytes(10, 90))
    named = f"broker 1 /d (100 B), broker 2 /d (100 B), broker 3 /d (100 B){more}"
    expected = (
        f"{named}: even an empty volume does not reach the release margin of 90 B above the limit "
        "of 10 B, so a violation never ends; set a smaller margin"
    )
    found = misfits(seen(margin, brokers=brokers).volumes(), margin)
    assert [expected] == list(sentences(found))
