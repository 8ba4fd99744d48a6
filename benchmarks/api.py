"""The HTTP API under load: latency at 1,000 requests/s, and how fast a change gets around.

The server is a process of its own, on one core. Requests arrive independently (Poisson), whether
earlier ones were answered or not, and each latency counts from the moment at which the request was
to be sent: a server that stalls is charged for everyone who would have asked meanwhile.

Example: ``python -m benchmarks.api`` prints the table.
"""

import asyncio
import gc
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from benchmarks.rows import Row, as_table, percentile

_RATE: Final = 1000.0
_SECONDS: Final = 10.0
_READERS: Final = 100
_CHANGES: Final = 20
_REST_S: Final = 10.0
_CLOSED_S: Final = 5.0
_CLIENTS: Final = 4
_SEED: Final = 3

_GET: Final = b"GET /v1/throttle-factor HTTP/1.1\r\nHost: sidecar\r\n\r\n"
_WAIT: Final = (
    b"GET /v1/throttle-factor HTTP/1.1\r\nHost: sidecar\r\nIf-None-Match: *\r\n"
    b"Prefer: wait=60\r\n\r\n"
)


_OPERATIONS: Final = 50
"""In a request of KIP-599's experiment."""


def _admission(operations: int) -> bytes:
    asked = [
        {"kind": "create_topic", "topic": f"load-{number:05}", "partitions": 4}
        for number in range(operations)
    ]
    body = json.dumps({"user": "alice", "client_id": "portal", "operations": asked})
    return (
        "POST /v1/admissions/controller-mutations HTTP/1.1\r\nHost: sidecar\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def run() -> list[Row]:
    """Measures all of it."""
    gc.disable()
    with _server(3, 2) as server:
        cpu = asyncio.run(_at_rest(server))
        waited = -_waited_ms("self") - _waited_ms(server.pid)
        latencies = asyncio.run(_open_loop(server.port, _SECONDS))
        waited += _waited_ms("self") + _waited_ms(server.pid)
        spreads = asyncio.run(_spreads(server))
        admitted = asyncio.run(_open_loop(server.port, _SECONDS, request=_admission(1)))
        most = asyncio.run(_closed_loop(server.port, _admission(1)))
        most_large = asyncio.run(_closed_loop(server.port, _admission(_OPERATIONS)))
        resident = server.usage()["resident_mb"]
    with _server(1000, 12) as large:
        listed = asyncio.run(_open_loop(large.port, 5.0, "/v1/volumes"))
        scraped = asyncio.run(_open_loop(large.port, 5.0, "/metrics"))
    asked = f"GET /v1/throttle-factor at {_RATE:,.0f}/s"
    return [
        Row(f"{asked}, p50", percentile(latencies, 0.5), "ms"),
        Row(f"{asked}, p99", percentile(latencies, 0.99), "ms", 5.0),
        Row(f"{asked}, slowest of {len(latencies):,}", max(latencies), "ms"),
        Row("both processes waited for a core meanwhile (a busy machine)", waited, "ms"),
        Row(f"a change at the last of {_READERS} readers, median", percentile(spreads, 0.5), "ms"),
        Row(f"the same, slowest of {len(spreads)} changes", max(spreads), "ms", 50.0),
        Row(f"admissions of a topic at {_RATE:,.0f}/s, p50", percentile(admitted, 0.5), "ms"),
        Row(f"admissions of a topic at {_RATE:,.0f}/s, p99", percentile(admitted, 0.99), "ms"),
        Row("admissions of a topic, one after another", most, "requests/s"),
        Row(
            f"admissions of {_OPERATIONS} topics each, one after another", most_large, "requests/s"
        ),
        Row("CPU of the API at rest", cpu, "% of a core", 0.5),
        Row("resident memory of the API after this load", resident, "MB"),
        Row(f"{asked}, p99 while 12,000 volumes are listed", percentile(listed, 0.99), "ms"),
        Row(f"{asked}, p99 while 12,000 volumes are scraped", percentile(scraped, 0.99), "ms"),
    ]


class _Server:
    """The measured process, from outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input: IO[str] = process.stdin
        self._output: IO[str] = process.stdout
        self.pid = str(process.pid)
        self.port = int(self._output.readline())

    def change(self) -> float:
        """Changes the decision; when, monotonic seconds."""
        self._input.write("change\n")
        self._input.flush()
        return float(self._output.readline())

    def usage(self) -> dict[str, float]:
        """CPU seconds so far and resident megabytes."""
        self._input.write("usage\n")
        self._input.flush()
        used: dict[str, float] = json.loads(self._output.readline())
        return used


@contextmanager
def _server(brokers: int, volumes: int) -> Iterator[_Server]:
    command = [sys.executable, "-m", "benchmarks.api_server"]
    command += ["--brokers", str(brokers), "--volumes", str(volumes)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield _Server(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(10)


def _waited_ms(pid: str) -> float:
    """How long a process was ready to run, so far, and had no core."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e6


class _Connection(asyncio.Protocol):
    """A keep-alive connection with one request under way at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._left = 0
        self._received = b""
        self._answered: asyncio.Future[float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self, request: bytes) -> asyncio.Future[float]:
        """Sends a request; the future has the moment at which all of the answer was there."""
        assert self._transport is not None
        self._answered = asyncio.get_running_loop().create_future()
        self._received = b""
        self._transport.write(request)
        return self._answered

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if end and self._answered is not None:
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if len(body) >= length:
                assert head.startswith(b"HTTP/1.1 200 ")
                self._answered.set_result(time.monotonic())

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


async def _connect(port: int) -> _Connection:
    _, connection = await asyncio.get_running_loop().create_connection(
        _Connection, "127.0.0.1", port
    )
    return connection


async def _open_loop(
    port: int, seconds: float, beside: str | None = None, request: bytes = _GET
) -> list[float]:
    """Latencies in ms; ``beside`` is fetched every second meanwhile."""
    idle = [await _connect(port) for _ in range(50)]
    connections = list(idle)
    chance = random.Random(_SEED)
    latencies: list[float] = []
    running: set[asyncio.Task[None]] = set()

    async def one(due: float) -> None:
        connection = idle.pop() if idle else await _connect(port)
        latencies.append((await connection.ask(request) - due) * 1000)
        idle.append(connection)

    fetching = asyncio.create_task(_fetch(port, beside)) if beside else None
    start = due = time.monotonic()
    while due < start + seconds:
        due += chance.expovariate(_RATE)
        if (early := due - time.monotonic()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(one(due))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    if fetching is not None:
        fetching.cancel()
    for connection in {*idle, *connections}:
        connection.close()
    await asyncio.sleep(0.1)
    return latencies


async def _closed_loop(port: int, request: bytes) -> float:
    """Answers a second to four clients that each ask again as soon as they have an answer."""
    answered = 0
    end = time.monotonic() + _CLOSED_S

    async def client() -> None:
        nonlocal answered
        connection = await _connect(port)
        while time.monotonic() < end:
            await connection.ask(request)
            answered += 1
        connection.close()

    await asyncio.gather(*(client() for _ in range(_CLIENTS)))
    await asyncio.sleep(0.1)
    return answered / _CLOSED_S


async def _fetch(port: int, path: str) -> None:
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        try:
            while await reader.read(2**20):
                pass
        finally:
            writer.close()
        await asyncio.sleep(1)


async def _spreads(server: _Server) -> list[float]:
    """For each change, ms until the last waiting reader had all of the answer."""
    readers = [await _connect(server.port) for _ in range(_READERS)]
    spreads = []
    for _ in range(_CHANGES):
        answers = [reader.ask(_WAIT) for reader in readers]
        await asyncio.sleep(0.3)
        changed_at = await asyncio.to_thread(server.change)
        spreads.append((max(await asyncio.gather(*answers)) - changed_at) * 1000)
    for reader in readers:
        reader.close()
    return spreads


async def _at_rest(server: _Server) -> float:
    """CPU of the process in percent of a core, with nobody asking and ten readers waiting."""
    readers = [await _connect(server.port) for _ in range(10)]
    for reader in readers:
        reader.ask(_WAIT)
    await asyncio.sleep(1)
    before = server.usage()["cpu_s"]
    await asyncio.sleep(_REST_S)
    used = server.usage()["cpu_s"] - before
    for reader in readers:
        reader.close()
    return used / _REST_S * 100


if __name__ == "__main__":
    print(as_table(run()))
