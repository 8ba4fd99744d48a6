"""Brokers' logs as files, and their lines as a log shipper sends them into a topic.

Example: a shipper that was killed goes back to its checkpoint: lines 12 to 20 of a broker's log are
sent, and then 15 to 25. What is in the topic is more than what is in the files.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from usage_pipeline.sample import Sample, write_sample

_FILE_LINES: Final = 40
"""Some 50 kB: of a stretch of less than 64 kB each line's time is known well enough to know a line
without one again (``positions``)."""
_TORN_AT: Final = 7
_BACK: Final = 20
"""How many lines a shipper goes back, at most: no more than half a file, where no line is torn."""
_BURST: Final = 10
_WITHOUT_PLACE: Final = 2


@contextmanager
def going_on(step: Callable[[], None], every_s: float) -> Iterator[None]:
    """Does something so often meanwhile."""
    stopped = threading.Event()

    def go_on() -> None:
        while not stopped.wait(every_s):
            step()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


class Shipper:
    """Sends the lines of three brokers' logs, those of a broker in order into its partition.

    Two brokers' messages say where their lines are, and some of these are sent again. Those of the
    third are lines alone.

    Attributes:
        sent: messages.
        resent: of them, those that were sent before.
    """

    __slots__ = ("_at", "_chance", "_messages", "_producer", "_topic", "resent", "sent")

    def __init__(  # noqa: PLR0917  by name
        self,
        folder: Path,
        logs: Path,
        count: int,
        bootstrap: str,
        topic: str,
        chance: random.Random,
    ) -> None:
        """Cuts made-up logs into files, each with a name that rotation gives.

        Args:
            folder: for the sample.
            logs: the files' folder.
            count: how often it is to ship, until all is sent, at least.
            bootstrap: of the topic's cluster.
            topic: with three partitions.
            chance: how far it goes back.
        """
        size = count * _BURST * 3 * 1150
        sample = write_sample(folder / "sample", Sample(size, brokers=3, hours=24))
        self._messages: dict[int, list[bytes]] = {}
        for broker in range(3):
            text = b"".join(
                file.read_bytes() for file in sorted(sample.request_logs.glob(f"broker-{broker}/*"))
            )
            self._messages[broker] = list(_files(logs, broker, text))
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._topic = topic
        self._chance = chance
        self._at = dict.fromkeys(self._messages, 0)
        self.sent = self.resent = 0

    def ship(self) -> None:
        """Sends the next lines of each broker; every third time it goes back before."""
        for broker, messages in self._messages.items():
            at = self._at[broker]
            is_killed = broker != _WITHOUT_PLACE and at // _BURST % 3 == 2
            first = max(0, at - self._chance.randint(1, _BACK)) if is_killed else at
            some = messages[first : at + _BURST]
            if at >= len(messages):
                continue
            for message in some:
                self._producer.produce(self._topic, message, str(broker), partition=broker)
            self.sent += len(some)
            self.resent += at - first
            self._at[broker] = at + _BURST
        assert 0 == self._producer.flush(20)

    def ship_all(self) -> None:
        """Sends what is left."""
        while any(self._at[broker] < len(some) for broker, some in self._messages.items()):
            self.ship()


def _files(logs: Path, broker: int, text: bytes) -> Iterator[bytes]:
    """Writes files of some lines, every third with a torn one, and returns messages of them."""
    every = text.splitlines()
    for number, first in enumerate(range(0, len(every), _FILE_LINES)):
        lines = every[first : first + _FILE_LINES]
        torn = [b"torn"] * (number % 3 == 0)
        file = logs / f"broker-{broker}" / f"kafka-request.log.{number:05}"
        file.parent.mkdir(parents=True, exist_ok=True)
        offset, written = 0, [*lines[:_TORN_AT], *torn, *lines[_TORN_AT:]]
        file.write_bytes(b"".join(line + b"\n" for line in written))
        for line in written:
            place = b"" if broker == _WITHOUT_PLACE else f"{file}:{offset}:".encode()
            yield place + line
            offset += len(line) + 1
