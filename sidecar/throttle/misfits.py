"""Lines that do not fit a volume: a limit, release margin, soft limit or stop line.

Bytes and ratios can only be compared when a volume's size is known. So the sidecar compares the
lines with each volume that it reads. It reports a misfit and changes nothing. A release margin that
was capped would release producers at a value that nobody has set. And there is no right cap: a file
system is never all available, so a margin up to the size of the volume is as unreachable.

A line does not fit if an empty volume of that size would violate it.

Example: a limit of 10 GB with a release margin of 100 GB does not fit a volume of 100 GB. Once that
volume violates the limit, it violates it even when it is empty.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from sidecar.throttle.memory import VolumeState
from sidecar.throttle.rules import Rules
from sidecar.throttle.sizes import size
from sidecar.volumes import Volume

Line = Literal["limit", "release margin", "soft limit", "stop line"]

_NAMED = 3
"""The most volumes that a sentence names; the others are only counted."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A line that does not fit a volume.

    Attributes:
        line: the line to change.
        volume: the volume.
        effect: what follows for the volume, and what to set: the end of a sentence.
    """

    line: Line
    volume: Volume
    effect: str


def misfits(states: Iterable[VolumeState], rules: Rules) -> list[Misfit]:
    """The lines that do not fit these volumes, by volume."""
    return [
        Misfit(line, state.volume, effect)
        for state in states
        for line, effect in _of_volume(state, rules).items()
    ]


def sentences(found: Iterable[Misfit]) -> Iterator[str]:
    """One sentence for each effect, with the first volumes that have it."""
    alike: dict[str, list[Volume]] = {}
    for misfit in found:
        alike.setdefault(misfit.effect, []).append(misfit.volume)
    for effect, volumes in alike.items():
        names = ", ".join(
            f"broker {volume.broker_id} {volume.log_dir} ({size(volume.total_bytes)})"
            for volume in volumes[:_NAMED]
        )
        more = f" and {len(volumes) - _NAMED} more" if len(volumes) > _NAMED else ""
        yield f"{names}{more}: {effect}"


def _of_volume(state: VolumeState, rules: Rules) -> dict[Line, str]:
    limit, soft_limit, stop_line = rules.required_limit, rules.soft_limit, rules.stop_line
    volume, named = state.volume, f"the limit of {limit.describe()}"
    empty, threshold = volume.emptied, limit.judge(volume).threshold_bytes
    effects: dict[Line, str] = {}
    if limit.judge(empty).violates:
        effects["limit"] = f"even an empty volume violates {named}; set a lower limit"
    elif limit.judge(empty, did_violate=True).violates:
        effects["release margin"] = (
            f"even an empty volume does not reach the release margin of {limit.describe_margin()} "
            f"above {named}, so a violation never ends; set a smaller margin"
        )
    if soft_limit is not None:
        soft = f"the soft limit of {soft_limit.describe()}"
        if soft_limit.judge(empty).violates:
            effects["soft limit"] = f"even an empty volume violates {soft}; set a lower soft limit"
        elif soft_limit.judge(volume).threshold_bytes <= threshold:
            effects["soft limit"] = (
                f"{soft} is not above {named}, so the factor falls without steps; set a higher "
                "soft limit"
            )
    if stop_line is not None and stop_line.judge(volume).threshold_bytes >= threshold:
        effects["stop line"] = (
            f"the stop line of {stop_line.describe()} is not below {named}, so the limit is the "
            "stop line; set a lower stop line, or a higher limit"
        )
    return effects
