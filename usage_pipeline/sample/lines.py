"""Batches of lines of one flow: draws columns, and then applies one ``%`` for each line.

The durations of a request are chosen from tables of a few thousand prepared texts, because
formatting a float takes longer than looking a text up. A request is charged at ``at_ms``. Its line
is written when the answer is sent, later by the time in the response queue and of sending.
``kernels.charge_times`` subtracts the same times.

Example: a request is charged at 10:00:00.122, with 0.063 ms in the queue and 0.144 ms of sending.
Its line says 10:00:00,123.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from usage_pipeline.sample.flows import Floats, Flow
from usage_pipeline.sample.shapes import THROTTLE, Column, Drawn, Ints, quoted

_PREPARED: Final = 4096
_CLIENTS_OF_USER: Final = 60
_MS: Final = tuple(f",{ms:03d}" for ms in range(1000))


@dataclass(frozen=True, slots=True)
class Batch:
    """The data for lines of one flow on one broker.

    Attributes:
        flow: the flow.
        at_ms: when each request is charged, ascending, in milliseconds since 1970.
        log_ms: when each line is written.
        drawn: the parts that differ between lines.
        times: for each line and kind of duration, the index of a prepared duration.
        throttle_ms: how long the client must wait after each request.
    """

    flow: Flow
    at_ms: Ints
    log_ms: Ints
    drawn: Drawn
    times: Ints
    throttle_ms: Ints


class Times:
    """Prepared durations: their values in ms, and their texts in Java's format."""

    __slots__ = ("_texts", "values")

    def __init__(self, rng: np.random.Generator) -> None:
        self.values: Floats = np.round(rng.lognormal(0.0, 0.7, _PREPARED), 3)
        self._texts: dict[float, list[str]] = {}

    def texts(self, scale: float) -> list[str]:
        """Return all durations times a scale, as texts to the microsecond."""
        texts = self._texts.get(scale)
        if texts is None:
            texts = [repr(value) for value in self.scaled(scale).tolist()]
            self._texts[scale] = texts
        return texts

    def scaled(self, scale: float) -> Floats:
        """Return all durations times a scale, in ms."""
        scaled: Floats = np.round(self.values * scale, 3)
        return scaled


_QUEUE: Final = 0.09
_RESPONSE: Final = 0.06
_SEND: Final = 0.12


def drawn_batch(flow: Flow, at_ms: Ints, rng: np.random.Generator, times: Times) -> Batch:
    """Draw lines for requests that are charged at these times."""
    count = len(at_ms)
    sizes = np.zeros(count, np.int64)
    if flow.records:
        sizes = np.maximum(68, rng.lognormal(0.0, 0.5, count) * flow.records / 1.133).astype(
            np.int64
        )
    picked = rng.integers(0, _PREPARED, (5, count))
    waited = times.scaled(_RESPONSE)[picked[3]] + times.scaled(_SEND)[picked[4]]
    log_ms = at_ms + np.ceil(waited).astype(np.int64)
    drawn = flow.draw(rng, sizes)
    if flow.clients:
        drawn = replace(drawn, clients=rng.integers(0, flow.clients, count))
    return Batch(flow, at_ms, log_ms, drawn, picked, np.zeros(count, np.int64))


def local_ms(batch: Batch, times: Times) -> Floats:
    """Return the handlers' time of each request."""
    ms: Floats = times.scaled(batch.flow.shape.local_ms)[batch.times[1]]
    return ms


def rendered(batch: Batch, stamps: dict[int, str], times: Times, broker: int) -> list[str]:
    """Return the lines with their newlines; texts of seconds are added to ``stamps`` as needed."""
    flow, shape = batch.flow, batch.flow.shape
    seconds, ms = np.divmod(batch.log_ms, 1000)
    logged = [stamps[s] + _MS[m] for s, m in zip(seconds.tolist(), ms.tolist(), strict=True)]
    scales = (_QUEUE, shape.local_ms, shape.remote_ms, _RESPONSE, _SEND)
    queue, local, remote, response, send = (
        times.scaled(scale)[batch.times[row]] for row, scale in enumerate(scales)
    )
    total = np.round(queue + local + remote + response + send, 3).tolist()
    columns = [
        list(map(times.texts(scale).__getitem__, batch.times[row].tolist()))
        for row, scale in enumerate(scales)
    ]
    throttle = batch.throttle_ms.tolist()
    correlation = (batch.at_ms % 1_000_003).tolist()
    answer_first = shape.response.find(THROTTLE) < shape.response.find("%s")
    has_throttle = THROTTLE in shape.response
    answer: list[Column] = list(batch.drawn.response)
    if has_throttle:
        answer.insert(0 if answer_first or not answer else len(answer), throttle)
    line = _template(flow, broker, shape.response)
    client_ids, users = _senders(batch)
    rows = zip(
        logged,
        correlation,
        *client_ids,
        *batch.drawn.request,
        *answer,
        total,
        *columns[:3],
        throttle,
        *columns[3:],
        *users,
        strict=True,
    )
    lines = [line % row for row in rows]
    if shape.throttled and throttle:
        _replace_throttled(lines, batch, broker, (logged, correlation, total, columns))
    return lines


def _senders(batch: Batch) -> tuple[list[Column], list[Column]]:
    """Return the columns of client-ids and of users; none if one client sends all lines."""
    numbers = batch.drawn.clients
    if numbers is None:
        return [], []
    clients = [f"{number:06}" for number in numbers.tolist()]
    users = [f"{number:04}" for number in (numbers // _CLIENTS_OF_USER).tolist()]
    return [clients], [users]


def empty_line(flow: Flow) -> str:
    """Return a line of a flow with zeros for all parts that differ."""
    line = _template(flow, 0, flow.shape.response)
    return line.replace("[%s]", "[2026-01-05 08:00:00,000]").replace("%s", "0").replace("%%", "%")


def _replace_throttled(
    lines: list[str],
    batch: Batch,
    broker: int,
    columns: tuple[list[str], list[int], list[float], list[list[str]]],
) -> None:
    logged, correlation, total, parts = columns
    line = _template(batch.flow, broker, batch.flow.shape.throttled)
    for at in np.flatnonzero(batch.throttle_ms).tolist():
        wait = int(batch.throttle_ms[at])
        request = (column[at] for column in batch.drawn.request)
        ends = (parts[0][at], parts[1][at], parts[2][at], wait, parts[3][at], parts[4][at])
        lines[at] = line % (logged[at], correlation[at], *request, wait, total[at], *ends)


def _template(flow: Flow, broker: int, response: str) -> str:
    shape = flow.shape
    name, version = flow.software
    client_id, user = quoted(flow.client_id), quoted("User:" + flow.user)
    if flow.clients:
        client_id, user = (f'{text[:-1]}%s"' for text in (client_id, user))
    port = 40_000 + sum(map(ord, flow.user + flow.client_id)) % 20_000
    return (
        '[%s] DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":'
        f'{shape.api_key},"requestApiVersion":{shape.version},"correlationId":%s,"clientId":'
        f'{client_id},"requestApiKeyName":"{shape.api}"}},"request":{shape.request},'
        f'"response":{response.replace(THROTTLE, "%s")},'
        f'"connection":"10.0.1.{broker}:9093-10.1.3.7:{port}-2-117","totalTimeMs":%s,'
        '"requestQueueTimeMs":%s,"localTimeMs":%s,"remoteTimeMs":%s,"throttleTimeMs":%s,'
        f'"responseQueueTimeMs":%s,"sendTimeMs":%s,"securityProtocol":"{flow.protocol}",'
        f'"principal":{user},"listener":"{flow.listener}",'
        f'"clientInformation":{{"softwareName":"{name}","softwareVersion":"{version}"}}}}'
        " (kafka.request.logger)\n"
    )
