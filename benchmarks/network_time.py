"""What a broker charges for network threads, beside the handlers' time that its request log has.

One broker with the JVM's own defaults, and one connection that sends the same request over and
over, the next one after each answer, without TLS and with it. A quota of request time is set and
never reached, so that the broker measures the time of both kinds of thread (KIP-124). The figure is
the network threads' time as a multiple of the handlers' time.

Example: the broker measures 12 % of a thread, and the lines of the same 10 s have handlers' times
of 0.8 s in total, which is 8 %. The network threads took 0.5 times the handlers' time.
"""

import asyncio
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import trustme
from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest

from benchmarks.request_log_cost import MeasuredBroker, batch_of, frame_of, optimised
from benchmarks.rows import Row, median_row
from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener, Tls
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.requestlog.line import Line, parse
from sidecar.requestlog.tail import Tail
from tests.support.java import beans_of
from tests.support.secured import pkcs8

_TLS: Final = "SECURE"
_RECORD: Final = 100_000
_RECORDS: Final = 200
_WARM_UP_S: Final = 15.0
_WINDOW_S: Final = 10.5
"""Kafka divides by 10 to 11 s."""
_READS: Final = 5
_PAUSE_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """Requests of one kind: its name, and what is sent."""

    name: str
    request: Request[Any]


def run() -> list[Row]:
    """Starts a broker and measures it."""
    with TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> list[Row]:
    ca = trustme.CA()
    issued = ca.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(folder / "broker.pem"))
    key = pkcs8(issued.private_key_pem.bytes(), folder / "key.pem")
    listener = Listener(_TLS, "SSL", tls=Tls(folder / "broker.pem", key))
    context = ssl.create_default_context(cadata=ca.cert_pem.bytes().decode())
    async with Cluster(
        environ=os.environ, brokers=1, volumes=1, volume_bytes=8 << 30, listeners=[listener]
    ) as cluster:
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic("t", assignment=[[0]])
            await admin.create_topic("read", assignment=[[0]])
        broker = await optimised(cluster)
        quota = ({"client-id": None}, {"request_percentage": 1e6})
        if (failure := await alter_client_quotas(broker.admin, [quota])) is not None:
            raise RuntimeError(f"the quota was not set: {failure.message}")
        await broker.set_log("DEBUG")
        await _fill(broker)
        rows = []
        for kind, wire in product(_kinds(), (None, context)):
            address = cluster.bootstrap if wire is None else cluster.bootstrap_of(_TLS)
            ratios = await _ratios(broker, cluster.version, kind, address, wire)
            name = f"network threads, {kind.name}, {'without' if wire is None else 'with'} TLS"
            rows.append(median_row(name, ratios, "times the handlers"))
    return rows


def _kinds() -> Iterator[_Kind]:
    yield _Kind("metadata of a topic", MetadataRequest(["t"]))
    for size in (1000, _RECORD):
        topics = [("t", [(0, batch_of(size))])]
        yield _Kind(f"produce of {size / 1000:g} kB", ProduceRequest(None, 1, 10_000, topics))
    wanted = [("read", [(0, 0, _RECORD * 10)])]
    yield _Kind("fetch of 1 MB", FetchRequest(0, 1, _RECORD * 10, 0, wanted))


async def _fill(broker: MeasuredBroker) -> None:
    request = ProduceRequest(None, 1, 10_000, [("read", [(0, batch_of(_RECORD))])])
    frame = await frame_of(broker.admin, request, "fill")
    endpoint = broker.admin.bootstrap_servers[0]
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    for _ in range(_RECORDS):
        await _answered(reader, writer, frame)
    writer.transport.abort()


async def _ratios(
    broker: MeasuredBroker, version: str, kind: _Kind, address: str, wire: ssl.SSLContext | None
) -> list[float]:
    """Send the request again and again, and compare several times meanwhile."""
    client_id = f"{kind.name.replace(' ', '-')}-{'plain' if wire is None else 'tls'}"
    frame = await frame_of(broker.admin, kind.request, client_id)
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=wire, limit=1 << 22)
    sending = asyncio.create_task(_send(reader, writer, frame), name=client_id)
    log = Tail(Path(f"{broker.log}.requests"))
    log.read()
    lines: list[Line] = []
    ratios = []
    try:
        await asyncio.sleep(_WARM_UP_S)
        for _ in range(_READS):
            await asyncio.sleep(_PAUSE_S)
            if sending.done():
                raise RuntimeError(f"{client_id} ended") from sending.exception()
            name = f"kafka.server:type=Request,client-id={client_id}"
            (found,) = (await beans_of(broker.pid, version, name)).values()
            percent = found["request-time"]
            lines += [line for text in _read(log) if isinstance(line := parse(text), Line)]
            own = [line for line in lines if line.client_id == client_id]
            ratios.append(float(percent or 0.0) / _handlers_percent(own) - 1)
    finally:
        sending.cancel()
        writer.transport.abort()
    return ratios


def _read(log: Tail) -> Iterator[bytes]:
    while lines := log.read().lines:
        yield from lines


def _handlers_percent(lines: list[Line]) -> float:
    """The handlers' time of the newest lines as percent of a thread, over the window of a rate."""
    times = [line.time.timestamp() for line in lines if line.time is not None]
    newest = [
        line.local_ms
        for line, time_s in zip(lines, times, strict=True)
        if time_s > times[-1] - _WINDOW_S
    ]
    return sum(newest) / _WINDOW_S / 10


async def _send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes) -> None:
    while True:
        await _answered(reader, writer, frame)


async def _answered(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes
) -> None:
    writer.write(frame)
    length = int.from_bytes(await reader.readexactly(4), "big")
    await reader.readexactly(length)
