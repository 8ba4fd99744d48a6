"""What brokers measure of their clients, by the metrics that a JMX exporter shows of each broker.

Kafka measures what a client writes, over its quota window of 10 to 11 s, once there is a quota that
may apply to it: ``kafka.server:type=Produce,user=*,client-id=*``, attribute ``byte-rate``. Before
that there are no samples, which means unknown and never 0. A sample is of the clients that share
a quota: of a client-id, of a user, or of one user with one client-id. Not every exporter shows all
three, so a quota needs samples of its own kind. A user's clients may have been measured by their
client-ids before, so for quotas of users the highest of all samples counts then.

- A new sample rises for a window. So samples count once they have been there for ``WHOLE_S``.
- They count while the last answer is not older than ``FRESH_S``: nobody may have begun meanwhile.
- A broker without both counts with its fill rate (``sidecar.client_quotas.rates``).

Exporters name samples by their rules. These are recognised, in any case:
``kafka_server_Produce_byte_rate{user=...,client_id=...}`` (no rules, as Amazon MSK),
``kafka_server_quota_byte_rate{resource="Produce",...}`` (the exporter's examples),
``kafka_server_quota_Produce_byte_rate{...}``, and
``kafka_server_produce_client_id_NAME_byte_rate`` (its example for KRaft).

Example: etl writes 3 MB/s. A quota is set at 0 s. The samples show 0.6 MB/s at 2 s and 3 MB/s from
11 s on. At 14 s they count.
"""

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from sidecar.client_quotas.rates import Rates
from sidecar.http import HttpError, Response, failure_of
from sidecar.peers.trust import Trust
from sidecar.threads import OwnThreads
from sidecar.throttle.peak import Peak

_log = logging.getLogger(__name__)

WHOLE_S: Final = 12.0
FRESH_S: Final = 10.0
MOST_BYTES: Final = 8 << 20
DEADLINE_S: Final = 10.0
RETRY_S: Final = 30.0
_SPACING_S: Final = 2.0
_PATIENCE_S: Final = 2.0
"""How long a step of quotas waits for answers. Those that come later count in the next one."""
_MOST_AT_ONCE: Final = 8
_THREADS: Final = OwnThreads("broker metrics")

_SAMPLE: Final = re.compile(
    r"^kafka_server_(?:produce|quota)[\w:]*byte_rate[ {].*$", re.IGNORECASE | re.MULTILINE
)
_OF_PRODUCE: Final = re.compile("produce(, user=.*)?", re.IGNORECASE)

Highest = tuple[float, float, float]
"""The highest rates of a user, of a client-id, and of a user with a client-id."""

Send = Callable[..., Awaitable[Response]]


def highest(text: str) -> Highest:
    """The highest rates in metrics, bytes/s; 0.0 for none.

    Raises:
        ValueError: a sample can't be parsed.
    """
    rates = [0.0, 0.0, 0.0]
    lines = "\n".join(_SAMPLE.findall(text)) + "\n"
    for family in text_string_to_metric_families(lines):
        for sample in family.samples:
            shape = _shape(sample.name.lower(), sample.labels)
            if shape is not None and math.isfinite(sample.value):
                rates[shape] = max(rates[shape], sample.value)
    return rates[0], rates[1], rates[2]


def _shape(name: str, labels: Mapping[str, str]) -> int | None:
    """The place of a sample in ``Highest``; None if it is not of produce requests."""
    kind = name.removeprefix("kafka_server_").removeprefix("quota_")
    # What producers inside the broker send begins with "producer_".
    is_produce = kind.startswith("produce_")
    kind = kind.removeprefix("produce_")
    of_user, of_client = kind.startswith("user_"), "client_id_" in kind
    for label, value in labels.items():
        if label.lower() == "user":
            of_user = of_user or bool(value)
        elif label.lower().startswith("client"):
            of_client = of_client or bool(value)
        elif found := _OF_PRODUCE.fullmatch(value):
            # A rule for client-ids alone has the user in its first group, if it comes first.
            is_produce, of_user = True, of_user or found[1] is not None
    if not is_produce:
        return None
    return (2 if of_client else 0) if of_user else 1


async def read(url: str, send: Send) -> Highest | str:
    """Read the metrics of a broker: the highest rates as of ``highest``, or why not."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            answer = await send("GET", url, headers={}, longest_answer=MOST_BYTES)
            if answer.status != 200:
                return f"it answers {answer.status}"
            # In a thread, because thousands of clients take a second.
            return await _THREADS.call(_parsed, answer.body)
    except (OSError, HttpError, ValueError) as error:
        return failure_of(error, DEADLINE_S)


def _parsed(body: bytes) -> Highest | str:
    try:
        return highest(body.decode(errors="replace"))
    except (ValueError, LookupError):
        return "its samples can't be parsed"


@dataclass(slots=True)
class _Endpoint:
    """The metrics of a broker: peaks, and since when there are samples, as in ``Highest``."""

    url: str
    peaks: tuple[Peak, ...] = field(default_factory=lambda: (Peak(), Peak(), Peak()))
    since: list[float | None] = field(default_factory=lambda: [None, None, None])
    asked_at: float = -math.inf
    next_at: float = -math.inf
    failure: str = ""
    reading: asyncio.Task[None] | None = None

    def take(self, found: Highest | str, asked_at: float) -> None:
        self.failure = found if isinstance(found, str) else ""
        for number, rate in enumerate((0.0,) * 3 if isinstance(found, str) else found):
            self.peaks[number].add(rate, asked_at)
            # What a broker no longer measures has the rate 0.
            since = self.since[number]
            self.since[number] = None if rate == 0.0 else asked_at if since is None else since
        self.asked_at = -math.inf if self.failure else asked_at

    def rates(self, now: float, fresh_s: float) -> Rates | None:
        if now > self.asked_at + fresh_s:
            return None
        highest = [peak.highest(now) for peak in self.peaks]
        of_any = max((rate for rate in highest if rate is not None), default=None)
        of_user, of_client_id, of_both = (
            since is not None and self.asked_at >= since + WHOLE_S for since in self.since
        )
        return Rates(
            of_any if of_user else None,
            highest[1] if of_client_id else None,
            of_any if of_both else None,
        )


class BrokerMetrics:
    """Reads the metrics of brokers."""

    def __init__(
        self, urls: Mapping[int, str], clock: Callable[[], float], send: Send | None = None
    ) -> None:
        """Read nothing yet.

        Args:
            urls: broker id -> the address of its metrics.
            clock: steady seconds.
            send: sends a request, as ``Trust.request``.
        """
        self._endpoints = {broker_id: _Endpoint(url) for broker_id, url in urls.items()}
        self._clock = clock
        self._send = send or Trust().request
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)

    @property
    def failures(self) -> dict[int, str]:
        """Broker id -> why its metrics can't be read."""
        return {key: each.failure for key, each in self._endpoints.items() if each.failure}

    @property
    def unseen(self) -> list[int]:
        """The brokers whose metrics show no client."""
        read = {key: each for key, each in self._endpoints.items() if each.asked_at > -math.inf}
        return [key for key, each in read.items() if each.since == [None] * 3]

    def rates(self, fresh_s: float = FRESH_S) -> dict[int, Rates]:
        """Broker id -> its rates, each None if not known; only those read in ``fresh_s``."""
        now = self._clock()
        found = ((key, each.rates(now, fresh_s)) for key, each in self._endpoints.items())
        return {key: rates for key, rates in found if rates is not None}

    async def refresh(self) -> None:
        """Read the metrics that are due, and wait a little for the answers."""
        for broker_id, endpoint in self._endpoints.items():
            is_free = endpoint.reading is None or endpoint.reading.done()
            if is_free and self._clock() >= endpoint.next_at:
                endpoint.reading = asyncio.create_task(
                    self._read(broker_id, endpoint), name=f"metrics of broker {broker_id}"
                )
        readings = [each.reading for each in self._endpoints.values() if each.reading is not None]
        if readings:
            await asyncio.wait(readings, timeout=_PATIENCE_S)

    async def _read(self, broker_id: int, endpoint: _Endpoint) -> None:
        async with self._turns:
            asked_at = self._clock()
            found = await read(endpoint.url, self._send)
        before = endpoint.failure
        endpoint.take(found, asked_at)
        now = self._clock()
        # An exporter may take seconds of a broker's CPU, so it rests for as long as it worked.
        endpoint.next_at = now + (RETRY_S if endpoint.failure else max(_SPACING_S, now - asked_at))
        if endpoint.failure and endpoint.failure != before:
            _log.warning(
                "the metrics of broker %d can't be read (SIDECAR_BROKER_METRICS_URLS): %s",
                broker_id,
                endpoint.failure,
            )
        elif before and not endpoint.failure:
            _log.info("the metrics of broker %d can be read again", broker_id)
