"""How much thread time a broker has, in the unit of request_percentage (KIP-124).

100 % is one thread's whole time. A broker has its I/O threads and its network threads, all of them
for the whole of each quota window, so a broker has (num.io.threads + num.network.threads) x 100 %.
As first proposed, KIP-124 limited the I/O threads only; that form is ``io_percent``.

Example: Kafka's defaults, 8 I/O threads and 3 network threads, are 1,100 %, in the first form
800 %; 32 and 32 are 6,400 %.

Source: KIP-124, sections "Proposed Changes" and "Rejected Alternatives" (why it is absolute).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_PERCENT_OF_A_THREAD: Final = 100


@dataclass(frozen=True, slots=True)
class BrokerCapacity:
    """A broker's threads and the window that their time is measured over.

    Attributes:
        broker_id: the broker's node id.
        io_threads: num.io.threads, at least 1.
        network_threads: num.network.threads, at least 1.
        window_s: quota.window.size.seconds, at least 1. It changes how soon a limit is felt, not
            how much there is.

    Raises:
        ValueError: less than 1 of anything.
    """

    broker_id: int
    io_threads: int
    network_threads: int
    window_s: int

    def __post_init__(self) -> None:
        for name, value in self.settings().items():
            if value < 1:
                raise ValueError(f"broker {self.broker_id}: {name} is {value}, not 1 or more")

    @property
    def percent(self) -> int:
        """All of it, in percent of one thread."""
        return (self.io_threads + self.network_threads) * _PERCENT_OF_A_THREAD

    @property
    def io_percent(self) -> int:
        """The same as KIP-124 first had it: without network threads."""
        return self.io_threads * _PERCENT_OF_A_THREAD

    def settings(self) -> dict[str, int]:
        """By their names in Kafka."""
        return {
            "num.io.threads": self.io_threads,
            "num.network.threads": self.network_threads,
            "quota.window.size.seconds": self.window_s,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that is not the same on all brokers.

    Attributes:
        setting: its name in Kafka.
        broker_ids: each of its values -> the brokers that have it, both ascending.
    """

    setting: str
    broker_ids: Mapping[int, Sequence[int]]

    def __str__(self) -> str:
        descriptions = (
            f"{value} on {', '.join(map(str, ids))}" for value, ids in self.broker_ids.items()
        )
        return f"{self.setting} differs: {'; '.join(descriptions)}"


def differs(capacities: Iterable[BrokerCapacity]) -> tuple[Difference, ...]:
    """Each setting that brokers differ in; empty: they are all alike, or at most one."""
    values: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for capacity in sorted(capacities, key=lambda each: each.broker_id):
        for name, value in capacity.settings().items():
            values[name][value].append(capacity.broker_id)
    return tuple(
        Difference(name, {value: tuple(ids) for value, ids in sorted(by_value.items())})
        for name, by_value in values.items()
        if len(by_value) > 1
    )


def smallest(capacities: Iterable[BrokerCapacity]) -> BrokerCapacity:
    """The broker to plan for: a quota is one number for all of them, so it must fit this one.

    Raises:
        ValueError: no broker.
    """
    return min(capacities, key=lambda each: (each.percent, each.broker_id))
