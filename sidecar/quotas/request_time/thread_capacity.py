"""The capacity of a broker's threads, in the unit of request_percentage (KIP-124).

100 % is the whole time of one thread. A broker has I/O threads and network threads, so its capacity
is (num.io.threads + num.network.threads) x 100 %. As first proposed, KIP-124 limited only the I/O
threads; ``io_percent`` is that form.

Example: Kafka's defaults, 8 I/O threads and 3 network threads, are 1,100 %, in the first form
800 %; 32 and 32 are 6,400 %.

Source: KIP-124, sections "Proposed Changes" and "Rejected Alternatives" (why it is absolute).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SETTINGS: Final = ("num.io.threads", "num.network.threads", "quota.window.size.seconds")
"""The brokers' settings that count."""

_PERCENT_OF_A_THREAD: Final = 100


@dataclass(frozen=True, slots=True)
class BrokerCapacity:
    """A broker's threads and the window that their time is measured over.

    Attributes:
        broker_id: the broker's node id.
        io_threads: num.io.threads, at least 1.
        network_threads: num.network.threads, at least 1.
        window_s: quota.window.size.seconds, at least 1. It changes how soon a quota throttles, not
            the capacity.

    Raises:
        ValueError: a number is less than 1.
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
        """The capacity, in percent of one thread."""
        return (self.io_threads + self.network_threads) * _PERCENT_OF_A_THREAD

    @property
    def io_percent(self) -> int:
        """The capacity as in KIP-124's first form, without network threads."""
        return self.io_threads * _PERCENT_OF_A_THREAD

    def settings(self) -> dict[str, int]:
        """The settings by their names in Kafka."""
        values = (self.io_threads, self.network_threads, self.window_s)
        return dict(zip(SETTINGS, values, strict=True))


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting whose value differs between brokers.

    Attributes:
        setting: its name in Kafka.
        broker_ids: value -> the brokers that have it, both ascending.
    """

    setting: str
    broker_ids: Mapping[int, Sequence[int]]

    def __str__(self) -> str:
        descriptions = (
            f"{value} on {', '.join(map(str, ids))}" for value, ids in self.broker_ids.items()
        )
        return f"{self.setting} differs: {'; '.join(descriptions)}"


def differs(capacities: Iterable[BrokerCapacity]) -> tuple[Difference, ...]:
    """Return the settings in which brokers differ; empty if all brokers have the same values."""
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
    """Return the smallest broker. A quota is one number for all brokers, so it must fit this one.

    Raises:
        ValueError: there is no broker.
    """
    return min(capacities, key=lambda each: (each.percent, each.broker_id))
