"""The auditor notices a broken product by what a simulated world shows."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import pytest

from sidecar.throttle.decision import Decision, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes, Verdict
from sidecar.throttle.memory import Memory
from sidecar.volumes import Volume
from tests.auditor import audit
from tests.simulation.claims import Claims
from tests.simulation.faults import Fault, Kind
from tests.simulation.loop import VirtualLoop
from tests.simulation.world import Plan, World


@pytest.mark.slow
def test_a_node_id_that_is_unregistered_at_once_is_recorded() -> None:
    """Sidecars remember what it showed for the validity, though space was freed meanwhile."""
    renumbered = Fault(5.0, 4.5, Kind.BROKER_RENUMBERED, 2, 0.0)
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        world = World(Plan(98, 15.0, faults=[renumbered], calms=False), loop)
        (volume,) = world.brokers[2].volumes
        freed: list[int] = []

        def free() -> None:
            volume.free(1_000_000, 7.0)
            freed.append(volume.available_bytes)

        loop.call_at(7.0, free)
        loop.run_until_complete(world.run())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert not world.former
    moments = world.recorder.trace.moments
    (gone,) = {tuple(each.gone) for each in moments if each.gone}
    assert [*gone] == [freed[0] - 1_000_000]


def broken(method: str, of: type, replaced: Callable[..., object], duration_s: float) -> set[str]:
    """The claims that a world without faults breaks for the auditor, with a broken method.

    In this world, a volume violates for longer than the reaction time.
    """

    async def nothing(_: World) -> None:
        return None

    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        with (
            patch.object(of, method, replaced),
            # The world's own claims would end it.
            patch.object(Claims, "broken"),
            patch.object(World, "_calm_down", nothing),
        ):
            world = World(Plan(98, duration_s, faults=()), loop)
            loop.run_until_complete(world.run())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return {each.claim for each in audit(world.recorder.trace)}


@pytest.mark.slow
def test_a_product_that_sees_no_violation() -> None:
    """A broker throttles by its own volume then, and no other does."""

    def never(self: MinAvailableBytes, _: Volume, *, did_violate: bool = False) -> Verdict:
        return Verdict(did_violate and self.value < 0.0, 0.0)

    found = broken("judge", MinAvailableBytes, never, 127.0)
    assert found == {"a violation that a callback can know of throttles"}


@pytest.mark.slow
def test_a_product_that_never_releases() -> None:
    """Once it saw a violation."""
    decide, throttles = VolumeLimit.decide, set[VolumeLimit]()

    def for_ever(self: VolumeLimit, memory: Memory, now: float) -> Decision:
        decision = decide(self, memory, now)
        if decision.violations:
            throttles.add(self)
        return replace(decision, factor=0.0) if self in throttles else decision

    found = broken("decide", VolumeLimit, for_ever, 225.0)
    assert found == {"nothing is throttled without a cause"}
