"""How long the loop stands still while a large observation is folded into the memory.

Folding is one synchronous step, so that no reader sees half of a change: nobody is answered
meanwhile. Here 12,000 volumes that all fill, read every second, each with a whole trail of earlier
marks; then what the schedule makes of it, which is synchronous too.
"""

import os
import time
from typing import Final

from benchmarks.harness.machine import quiet_cores
from benchmarks.rows import Row, median_row
from sidecar.daemon.daemon import collect_garbage_rarely
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.fill import WINDOW_S
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing, next_poll
from sidecar.volumes import Membership, Observation, Reading, Volume

_BROKERS: Final = 1000
_VOLUMES: Final = 12
_GIB: Final = 1 << 30
_WARM_UP: Final = 10
_FOLDS: Final = 20
_FACTORS: Final = VolumeLimit(Rules(MinAvailableBytes(_GIB), 300.0), 1.0)
_TIMING: Final = Timing(60.0, 1.0)
_MEMBERSHIP: Final = Membership(
    "cluster", {broker_id: f"broker-{broker_id}:9092" for broker_id in range(_BROKERS)}, {}
)


def run() -> list[Row]:
    """Measures folds one second apart, by the cluster's clock."""
    # The memory of two marks a second apart is not yet that of a daemon that has run for a while.
    assert _WARM_UP > WINDOW_S
    os.sched_setaffinity(0, {quiet_cores(1)[0]})
    collect_garbage_rarely()
    memory = Memory()
    folds, plans = [], []
    for count in range(_WARM_UP + _FOLDS):
        observation = _observation(float(count))
        began = time.perf_counter()
        memory = _FACTORS.fold(memory, observation)
        decision = _FACTORS.decide(memory, observation.observed_at)
        folded = time.perf_counter()
        next_poll(memory, _TIMING, observation.observed_at, 0.0)
        planned = time.perf_counter()
        assert (decision.factor, memory.failed_polls) == (1.0, 0)
        if count >= _WARM_UP:
            folds.append(1000 * (folded - began))
            plans.append(1000 * (planned - folded))
    what = f"{_BROKERS * _VOLUMES:,} volumes"
    return [
        median_row(f"folding and deciding {what}", folds, "ms"),
        median_row(f"planning the next poll of {what}", plans, "ms"),
    ]


def _observation(at: float) -> Observation:
    return Observation(
        at,
        "poll",
        _MEMBERSHIP,
        {broker_id: _reading(broker_id, at) for broker_id in range(_BROKERS)},
    )


def _reading(broker_id: int, at: float) -> Reading:
    volumes = (
        Volume(broker_id, f"/var/lib/kafka/data-{number}", 100 * _GIB, _available(number, at))
        for number in range(_VOLUMES)
    )
    return Reading(broker_id, at, tuple(volumes))


def _available(number: int, at: float) -> int:
    return 50 * _GIB - int(at * number * 1e6)
