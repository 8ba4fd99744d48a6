"""What reassignments and log-dir moves will still bring to a volume.

A replica that arrives lacks what its leader's replica is larger; a copy of a log-dir move lacks
what the broker's own replica is larger. Records that are written or deleted meanwhile are not
foreseen. Until a replica that arrives has a log, its log dir is known only on a broker with one.

Example: "orders" 0 arrives with 2 GB so far, of its leader's 9 GB: it still brings 7 GB.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sidecar.throttle.growth import Partition, Placement, Replicas
from sidecar.throttle.sizes import size


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What still arrives on a volume.

    Attributes:
        replicas: the partitions that a reassignment adds, with the bytes that they lack.
        copies: the partitions that a log-dir move copies there, with the bytes that they lack.
        unknown: the number of partitions that arrive, there or on another volume of the broker, and
            whose missing bytes are not known; None if reassignments could not be read.
    """

    replicas: Mapping[Partition, int] = field(default_factory=dict)
    copies: Mapping[Partition, int] = field(default_factory=dict)
    unknown: int | None = 0

    @property
    def total_bytes(self) -> int:
        """The bytes of all that are known."""
        return sum(self.replicas.values()) + sum(self.copies.values())

    def __str__(self) -> str:
        causes = ("reassignments", self.replicas), ("log-dir moves", self.copies)
        text = " and ".join(cause for cause, brought in causes if any(brought.values()))
        at_least = "" if self.unknown == 0 else "at least "
        return f"{text[:1].upper()}{text[1:]} still bring {at_least}{size(self.total_bytes)}"


def arrivals(log_dirs: Mapping[str, Replicas], placement: Placement) -> dict[str, Arrivals]:
    """Find what still arrives on each volume of a broker: log dir -> that.

    Args:
        log_dirs: log dir -> the partitions there, by one reading.
        placement: the partitions that a reassignment adds, and their leaders' sizes.
    """
    here: dict[Partition, tuple[str, int]] = {}
    copies: dict[Partition, tuple[str, int]] = {}
    for log_dir, replicas in log_dirs.items():
        for topic, partitions in replicas.items():
            for index, size_bytes, is_copy in partitions:
                (copies if is_copy else here)[topic, index] = log_dir, size_bytes
    lacks: dict[str, dict[Partition, int]] = {log_dir: {} for log_dir in log_dirs}
    moved: dict[str, dict[Partition, int]] = {log_dir: {} for log_dir in log_dirs}
    unknown = dict.fromkeys(log_dirs, 0)
    only = next(iter(log_dirs)) if len(log_dirs) == 1 else None
    for partition in placement.arriving or ():
        at, size_bytes = here.get(partition, (only, 0))
        of_leader = placement.sizes.get(partition)
        if at is not None and of_leader is not None:
            lacks[at][partition] = max(0, of_leader - size_bytes)
        else:
            for log_dir in log_dirs if at is None else (at,):
                unknown[log_dir] += 1
    for partition, (log_dir, size_bytes) in copies.items():
        _, whole = here.get(partition, ("", 0))
        moved[log_dir][partition] = max(0, whole - size_bytes)
    is_known = placement.arriving is not None
    return {
        log_dir: Arrivals(lacks[log_dir], moved[log_dir], unknown[log_dir] if is_known else None)
        for log_dir in log_dirs
    }
