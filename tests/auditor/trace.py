"""A recorded run: the settings, and one moment after another.

In a file, each line is a JSON object: the first has the settings, and each other one a moment.

Example: a volume of broker 0 has 120 MB available at 31 s, its broker has run for 20 s, and its
callback applies 0.0: ``Moment(31.0, {0: BrokerSight(volumes={"/d0": VolumeSight(120_000_000,
20.0)}, up_s=20.0, factor=0.0)}, ...)``.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The settings of a cluster, and what its clients can write.

    Attributes:
        limit_bytes: a volume with at most so many available bytes violates.
        margin_bytes: the release margin.
        soft_bytes: the soft limit; None without one.
        stop_bytes: the stop line; None without one.
        interval_s: the check interval.
        validity_s: the validity of an observation.
        pause_s: the longest pause of a client.
        emergency_pause_s: the same in an emergency.
        asks_all: whether each callback asks all sidecars, and not only its own.
        most_bytes_per_s: the most that all clients write together, as while they catch up.
        once_bytes: one request of each connection.
        is_bounded: whether the bytes have a bound: no client opens a connection for each request,
            or brokers have the authorizer.
    """

    limit_bytes: int
    interval_s: float
    most_bytes_per_s: float
    once_bytes: float
    margin_bytes: int = 0
    soft_bytes: int | None = None
    stop_bytes: int | None = None
    validity_s: float = 300.0
    pause_s: float = 4.0
    emergency_pause_s: float = 300.0
    asks_all: bool = False
    is_bounded: bool = True

    @property
    def room_bytes(self) -> int:
        """With more than this available, a volume throttles and slows nobody."""
        return max(self.limit_bytes + self.margin_bytes, self.soft_bytes or 0)


@dataclass(frozen=True, slots=True)
class VolumeSight:
    """A volume at one moment.

    Attributes:
        available: the bytes available; None while its log dir is offline.
        quiet_s: for how long no fault has hidden it from sidecars; None during one.
        is_unreadable: whether its broker answers without its sizes, although it is not offline.
        most: the most bytes available since the moment before; None if nobody noted that.
    """

    available: int | None
    quiet_s: float | None
    is_unreadable: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSight:
    """A broker, its volumes, and its callback at one moment.

    Attributes:
        volumes: by log dir.
        up_s: for how long its process has run; None while it does not.
        quiet_s: for how long no fault has touched it; None during one.
        factor: the factor that its callback applies; None if the callback did not answer.
        stops: whether its callback admits nobody; None if that is not reported.
        overridden: whether an operator decided its factor.
        emergency: whether its callback allows the pauses of an emergency.
        longest_pause_s: the longest throttle time since its process started.
    """

    volumes: Mapping[str, VolumeSight]
    up_s: float | None = None
    quiet_s: float | None = None
    factor: float | None = None
    stops: bool | None = None
    overridden: bool = False
    emergency: bool = False
    longest_pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Moment:
    """The cluster at one moment.

    Attributes:
        at_s: seconds since the run began.
        brokers: by number.
        sidecars: by the number of the broker beside it: for how long no fault has touched it; None
            during one.
        appended_bytes: what clients have appended, or got acknowledged, since the run began.
        gone: the bytes that were last available on each volume of node ids that are registered
            and that no broker has any more.
    """

    at_s: float
    brokers: Mapping[int, BrokerSight]
    sidecars: Mapping[int, float | None]
    appended_bytes: float = 0.0
    gone: Sequence[int] = ()


@dataclass(slots=True)
class Trace:
    """A recorded run."""

    setup: Setup
    moments: list[Moment] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Writes it as lines of JSON."""
        with path.open("w", encoding="utf-8") as file:
            file.write(f"{json.dumps(asdict(self.setup))}\n")
            file.writelines(f"{json.dumps(asdict(moment))}\n" for moment in self.moments)


def read(lines: Iterable[str]) -> Trace:
    """Reads a trace that was written."""
    parsed = map(json.loads, lines)
    return Trace(Setup(**next(parsed)), [_moment(**each) for each in parsed])


def _moment(
    at_s: float,
    brokers: dict[str, Any],
    sidecars: dict[str, float | None],
    appended_bytes: float,
    gone: list[int],
) -> Moment:
    return Moment(
        at_s,
        {int(number): _broker(**each) for number, each in brokers.items()},
        {int(number): each for number, each in sidecars.items()},
        appended_bytes,
        tuple(gone),
    )


def _broker(volumes: dict[str, Any], **other: Any) -> BrokerSight:
    return BrokerSight(
        volumes={log_dir: VolumeSight(**each) for log_dir, each in volumes.items()}, **other
    )
