"""Producers with a backlog, beside the model of the callback, through a throttle and its release.

A producer makes records at a steady rate, keeps them in a buffer, and sends the oldest first, one
request after another: at once when nothing mutes it, else when its pause is over. A record that was
not sent within its delivery time-out is given up, which frees its space; while the buffer is full
the application waits, and makes nothing. One that is refused, as the authorizer refuses connections
that are new in the throttle, lands nothing before the release.

Example: 2 MB/s, a buffer of 80 MB and a throttle of 75 s: the buffer is full after 40 s, and at the
release its records are 35 to 75 s old.
"""

import heapq
import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.callback import Callback, Request

MB: Final = 1_000_000
RECORD_BYTES: Final = 10_000
FULL_BYTES_PER_S: Final = 45 * MB
"""What librdkafka sent with a backlog after a release that nothing paced, on a real broker."""

BEFORE_S: Final = 30.0
"""From the start to the throttle."""

_LINGER_S: Final = 0.005
_HELD_S: Final = 1.0
"""For how long the sidecar holds a request that waits for news."""


@dataclass(slots=True)
class Producer:
    """A producer: what it is, and what became of its records; times are seconds since the release.

    Attributes:
        time_out_s: of a record, from when it is made.
        client_id: by which it shares its pace.
        bytes_per_s: what the application makes from the throttle on.
        before_bytes_per_s: what it makes until then.
        request_bytes: the most that a request has.
        buffer_bytes: the most that waits.
        is_refused: whether it lands nothing in the throttle.
        landed: when a request landed, and its bytes.
        ages: when a request was sent, and how old its oldest record was.
        given_up: the number of each record that was -> when.
        backlog_bytes: in the buffer at the release.
    """

    time_out_s: float
    client_id: str = "c"
    bytes_per_s: float = 2.0 * MB
    before_bytes_per_s: float = 2.0 * MB
    request_bytes: int = MB
    buffer_bytes: int = 80 * MB
    is_refused: bool = False
    landed: list[tuple[float, int]] = field(default_factory=list)
    ages: list[tuple[float, float]] = field(default_factory=list)
    given_up: dict[int, float] = field(default_factory=dict)
    backlog_bytes: int = 0

    def landed_in(self, begin_s: float, end_s: float) -> int:
        """Bytes."""
        return sum(nbytes for at_s, nbytes in self.landed if begin_s <= at_s < end_s)


def play(
    producers: Sequence[Producer],
    throttle_s: float,
    *,
    ramp_ms: int = 60_000,
    after_s: float = 60.0,
) -> None:
    """From before the throttle until some time after it; ``ramp_ms`` 0 releases all at once."""
    release_s = BEFORE_S + throttle_s
    broker = _Broker(Callback(1, ["http://127.0.0.1:7070"], 0.0, ramp_ms=ramp_ms), release_s)
    queue: list[tuple[float, int, Iterator[float]]] = []
    for number, producer in enumerate(producers):
        heapq.heappush(queue, (0.0, number, _Life(producer, broker).run()))
    while queue[0][0] < release_s + after_s:
        now, number, life = queue[0]
        broker.passes_until(now)
        broker.now = now
        heapq.heapreplace(queue, (next(life), number, life))


class _Broker:
    """The callback, and the sidecar that it asks, which says the factor."""

    def __init__(self, callback: Callback, release_s: float) -> None:
        self.callback = callback
        self.release_s = release_s
        self.now = 0.0
        self.factor = 1.0
        self._changes = deque([(BEFORE_S, 0.0), (release_s, 1.0)])
        self._asked: tuple[Request, float] | None = None

    def passes_until(self, until_s: float) -> None:
        """Whatever the callback's own thread does by then."""
        while True:
            due = [self.callback.next_wake(self.now), *(at_s for at_s, _ in self._changes)]
            due += [] if self._asked is None else [self._asked[1] + _HELD_S]
            if min(due) > until_s:
                return
            self.now = max(self.now, min(due))
            self._hears()

    def _hears(self) -> None:
        now = self.now
        if self._changes and self._changes[0][0] <= now:
            self.factor = self._changes.popleft()[1]
        if self._asked is not None:
            document = {"factor": self.factor, "users": {}, "generation": 1, "valid_for_ms": 60_000}
            headers, body = {"ETag": f'"{self.factor:g}"'}, json.dumps(document).encode()
            self.callback.on_answer(self._asked[0], 200, headers, body, now)
        request = self.callback.next_request(now)
        self._asked = None if request is None else (request, now)


class _Life:
    """A producer's records, and when it sends them."""

    def __init__(self, producer: Producer, broker: _Broker) -> None:
        self._producer = producer
        self._broker = broker
        self._records: deque[tuple[int, float]] = deque()
        self._made = 0
        self._due_s = 0.0 if producer.before_bytes_per_s > 0.0 else BEFORE_S

    def run(self) -> Iterator[float]:
        """Yields when it is to go on."""
        producer, broker = self._producer, self._broker
        is_released = False
        while True:
            now = broker.now
            self._ages(now)
            if now >= broker.release_s and not is_released:
                is_released = True
                producer.backlog_bytes = len(self._records) * RECORD_BYTES
            if not self._records or (producer.is_refused and broker.factor == 0.0):
                yield now + _LINGER_S
                continue
            count = min(len(self._records), producer.request_bytes // RECORD_BYTES)
            producer.ages.append((now - broker.release_s, now - self._records[0][1]))
            for _ in range(count):
                self._records.popleft()
            nbytes = count * RECORD_BYTES
            yield now + nbytes / FULL_BYTES_PER_S
            now = broker.now
            producer.landed.append((now - broker.release_s, nbytes))
            pause_ms = broker.callback.charge("", producer.client_id, 0, nbytes, now)
            yield now + max(_LINGER_S, pause_ms / 1000.0)

    def _ages(self, now: float) -> None:
        """Records are made, and given up."""
        producer, records = self._producer, self._records
        while self._due_s <= now:
            is_before = self._due_s < BEFORE_S
            rate = producer.before_bytes_per_s if is_before else producer.bytes_per_s
            self._gives_up(self._due_s)
            if (len(records) + 1) * RECORD_BYTES <= producer.buffer_bytes:
                records.append((self._made, self._due_s))
            self._made += 1
            self._due_s += RECORD_BYTES / rate
        self._gives_up(now)

    def _gives_up(self, now: float) -> None:
        records, time_out_s = self._records, self._producer.time_out_s
        while records and records[0][1] + time_out_s <= now:
            number, made_s = records.popleft()
            self._producer.given_up[number] = made_s + time_out_s - self._broker.release_s
