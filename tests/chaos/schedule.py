"""Which process is killed, frozen or restarted when: a value of the seed and the duration alone.

Each fault begins, lasts for some seconds (``Spans``), and ends. No two are on one process at once,
and only one broker is away at a time, until it had the time to return and to copy what it missed;
sidecars are away whenever it comes so, and in a third of the moments all of them are taken at once.
The last part of the run has no fault: what must be right again is.

Example: ``plan(1, 600.0)`` has some 40 faults in 555 s, the same ones each time.
"""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

FIRST_S: Final = 10.0
"""No fault begins sooner: producers are at their rate by then."""
QUIET_S: Final = 45.0
"""Without faults at the end, or a third of a shorter run."""
BROKER_REST_S: Final = 20.0
"""From the end of a broker's fault to the next broker's: it starts, is unfenced, and copies."""
SIDECAR_REST_S: Final = 5.0

_ALL_SIDECARS: Final = "all sidecars"
_SHORTEST_CYCLE_S: Final = 10.0


class Action(StrEnum):
    """What a process gets at first; at the end it is resumed, or started again."""

    KILL = "SIGKILL"
    FREEZE = "SIGSTOP"
    RESTART = "SIGTERM"


class Role(StrEnum):
    """What a process is."""

    BROKER = "broker"
    SIDECAR = "sidecar"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of one process; seconds from the beginning of the run.

    Attributes:
        begin_s: when the process gets the signal.
        end_s: when it is resumed, or started again.
        action: which signal.
        role: broker or sidecar.
        number: the broker's id, also of the broker beside the sidecar.
    """

    begin_s: float
    end_s: float
    action: Action
    role: Role
    number: int

    @property
    def process(self) -> str:
        """The process, such as "sidecar 0"."""
        return f"{self.role} {self.number}"

    def __str__(self) -> str:
        lasts_s = self.end_s - self.begin_s
        return f"{clock(self.begin_s)}  {self.process}: {self.action} for {lasts_s:.1f} s"


@dataclass(frozen=True, slots=True)
class Spans:
    """The shortest and the longest times, seconds.

    Attributes:
        fault: how long a fault lasts.
        gap: from the beginning of a fault to that of the next.
        cleaning: from a crossing of the limit until space is freed.
    """

    fault: tuple[float, float] = (3.0, 12.0)
    gap: tuple[float, float] = (4.0, 16.0)
    cleaning: tuple[float, float] = (8.0, 45.0)


USUAL: Final = Spans()


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens in a run.

    Attributes:
        faults: by their beginnings.
        cleaning_s: how long after each crossing of the limit space is freed, in turn, seconds;
            enough of them for the duration.
    """

    faults: tuple[Fault, ...]
    cleaning_s: tuple[float, ...]


def plan(seed: int, duration_s: float, brokers: int = 3, spans: Spans = USUAL) -> Plan:
    """The run of a seed.

    Args:
        seed: any number.
        duration_s: of the whole run, seconds.
        brokers: how many brokers there are, each with a sidecar.
        spans: how long faults last, and how often they come.
    """
    chance = random.Random(f"chaos {seed} {duration_s:g}")
    until_s = duration_s - min(QUIET_S, duration_s / 3)
    free_at = {(role, number): 0.0 for role in Role for number in range(brokers)}
    faults: list[Fault] = []
    at_s = FIRST_S
    while at_s + spans.fault[1] <= until_s:
        target, action = chance.choice([*Role, _ALL_SIDECARS]), chance.choice(list(Action))
        end_s = at_s + chance.uniform(*spans.fault)
        role = target if isinstance(target, Role) else Role.SIDECAR
        free = [number for number in range(brokers) if free_at[role, number] <= at_s]
        if target != _ALL_SIDECARS:
            numbers = [chance.choice(free)] if free else []
        else:
            numbers = free if len(free) == brokers else []
        for number in numbers:
            fault = Fault(round(at_s, 1), round(end_s, 1), action, role, number)
            faults.append(fault)
            _occupy(free_at, fault)
        at_s += chance.uniform(*spans.gap)
    cleanings = int(duration_s / _SHORTEST_CYCLE_S) + 1
    return Plan(
        tuple(faults),
        tuple(round(chance.uniform(*spans.cleaning), 1) for _ in range(cleanings)),
    )


def clock(at_s: float) -> str:
    """Seconds of a run for people: 83.4 is "1:23"."""
    return f"{int(at_s) // 60}:{int(at_s) % 60:02}"


def _occupy(free_at: dict[tuple[Role, int], float], fault: Fault) -> None:
    if fault.role is Role.SIDECAR:
        free_at[fault.role, fault.number] = fault.end_s + SIDECAR_REST_S
        return
    for role, number in free_at:
        if role is Role.BROKER:
            free_at[role, number] = fault.end_s + BROKER_REST_S
