"""Runs as data, made up for the tests of what is worked out of them."""

from collections.abc import Sequence
from typing import Final

from tests.chaos.bound import Bound, Clients, Rules
from tests.chaos.course import Course
from tests.chaos.samples import CallbackSight, Sample, SidecarSight
from tests.chaos.schedule import Action, Fault, Plan, Role

LIMIT: Final = 100_000_000
MB: Final = 1_000_000

BOUND: Final = Bound(
    Rules(
        interval_s=1.0,
        deadline_s=1.0,
        retry_s=0.5,
        look_s=1.0,
        apply_s=0.5,
        pause_max_s=4.0,
        leak_ratio=0.0,
    ),
    (Clients(4, MB, 8e6),),
    brokers=3,
    apart_bytes=0,
)
"""10.08 MB/s x 1.5 s + 4 MB + 1 MB/s."""

SEES: Final = SidecarSight(is_ready=True, factor=1.0, source="observation")
THROTTLES: Final = SidecarSight(is_ready=True, factor=0.0, source="observation")
FREE: Final = CallbackSight("SIDECAR", 1.0, "FREE", 0.1, emergency=False, longest_pause_s=0.0)
LOCAL: Final = CallbackSight("LOCAL", 0.0, "THROTTLED", 0.1, emergency=False, longest_pause_s=4.0)
THROTTLED: Final = CallbackSight(
    "SIDECAR", 0.0, "THROTTLED", 0.1, emergency=False, longest_pause_s=4.0
)

FAULT: Final = Fault(20.0, 26.0, Action.KILL, Role.SIDECAR, 1)


def sample(
    at_s: float,
    past: Sequence[int] = (-50, -50, -50),
    *,
    sidecars: Sequence[SidecarSight | None] | None = None,
    callbacks: Sequence[CallbackSight | None] | None = None,
    away: Sequence[str] = (),
    steady_s: float = 60.0,
) -> Sample:
    """A second.

    Args:
        at_s: which.
        past: megabytes by which each broker's volume is past the limit.
        sidecars: what each answers; by default all see what is there.
        callbacks: likewise.
        away: the processes that a fault has taken.
        steady_s: for how long all others have run.
    """
    violates = max(past) >= 0
    names = [f"{role} {number}" for role in Role for number in range(len(past))]
    available = {number: LIMIT - each * MB for number, each in enumerate(past)}
    return Sample(
        at_s,
        available,
        available,
        dict(enumerate(sidecars or [THROTTLES if violates else SEES] * len(past))),
        dict(enumerate(callbacks or [THROTTLED if violates else FREE] * len(past))),
        {name: steady_s for name in names if name not in away},
    )


def course(samples: Sequence[Sample] = (), faults: Sequence[Fault] = ()) -> Course:
    """A run of these seconds."""
    plan = Plan(tuple(faults), (10.0,))
    return Course(
        seed=7, duration_s=60.0, limit_bytes=LIMIT, plan=plan, bound=BOUND, samples=list(samples)
    )
