"""One poll of a large cluster: is it cheap, and linear in brokers?

The daemon's own parts (connections, protocol, fold, decision) on one core, against simulated
brokers on another. Both are on the same machine, so what is measured is the sidecar's work and the
kernel's, not a network.

A poll is what the poller does at each interval: DescribeCluster, DescribeLogDirs of every broker,
fold, decide.
"""

import asyncio
import os
import resource
import socket
import statistics
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.harness.machine import quiet_cores
from benchmarks.rows import Row, median_row
from benchmarks.simulated import simulated_cluster
from sidecar.clock import SteadyClock
from sidecar.daemon.daemon import collect_garbage_rarely
from sidecar.kafka import KafkaVolumeSource
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.throttle.decision import Decision, Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.rules import Rules
from sidecar.volumes import Observation

_BROKERS: Final = (100, 250, 500, 1000)
_VOLUMES: Final = 12
_CONNECTS: Final = 5
_WARM_UP: Final = 3
_POLLS: Final = 15
_TIMEOUT_S: Final = 30.0
_LINEAR: Final = 1.5
"""What a broker may cost more in a cluster ten times as large: caches and the garbage collector are
not linear, and a poll that were quadratic would have 10 here."""
_FACTORS: Final = VolumeLimit(Rules(MinAvailableBytes(10**9), 300.0), 1.0)

_BYTES_RECEIVED: Final = 128
"""Where tcpi_bytes_received is in Linux's struct tcp_info (since 4.1)."""


@dataclass
class _Figures:
    """What was measured at one size of the cluster, seconds and bytes."""

    connecting: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    received: int = 0


def run() -> list[Row]:
    """Measures clusters of several sizes."""
    ours, theirs = quiet_cores(2)
    os.sched_setaffinity(0, {ours})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    collect_garbage_rarely()
    sizes = {}
    for brokers in _BROKERS:
        with simulated_cluster(brokers, _VOLUMES, theirs) as address:
            sizes[brokers] = asyncio.run(_measure(address, brokers))
    largest = _BROKERS[-1]
    figures = sizes[largest]
    what = f"{largest:,} brokers x {_VOLUMES} volumes"
    each = {size: 1000 * statistics.median(each.cpu) / size for size, each in sizes.items()}
    return [
        median_row(f"a warm poll of {what}", figures.wall, "s", 0.5),
        median_row("the same, CPU", figures.cpu, "s", 0.5),
        median_row(f"connecting and the first poll of {what}", figures.connecting, "s", 1.5),
        *(
            median_row(f"CPU of a poll of {size} brokers, for each", _each(figures, size), "ms")
            for size, figures in sizes.items()
        ),
        Row(
            f"the same at {largest:,} brokers over at {_BROKERS[0]}",
            each[largest] / each[_BROKERS[0]],
            "x",
            _LINEAR,
        ),
        Row(f"received in a poll of {what}", figures.received / 1e3, "kB"),
    ]


def _each(figures: _Figures, brokers: int) -> list[float]:
    return [1000 * cpu_s / brokers for cpu_s in figures.cpu]


async def _measure(address: HostPort, brokers: int) -> _Figures:
    figures = _Figures()
    admin = KafkaAdmin(bootstrap_servers=(address,))
    clock = SteadyClock()
    # One more than are counted: at the first the simulated brokers encode their answers.
    for count in range(1 + _CONNECTS):
        async with KafkaVolumeSource(admin, clock=clock.now) as source:
            began = time.perf_counter()
            memory, decision = await _poll(source, Memory())
            took = time.perf_counter() - began
            _check(memory, decision, brokers)
            if count > 0:
                figures.connecting.append(took)
            if count == _CONNECTS:
                await _measure_warm(source, memory, brokers, figures)
    return figures


async def _measure_warm(
    source: KafkaVolumeSource, memory: Memory, brokers: int, figures: _Figures
) -> None:
    for count in range(_WARM_UP + _POLLS):
        received = sum(_received())
        began, cpu = time.perf_counter(), time.process_time()
        memory, decision = await _poll(source, memory)
        cpu, took = time.process_time() - cpu, time.perf_counter() - began
        _check(memory, decision, brokers)
        if count >= _WARM_UP:
            figures.cpu.append(cpu)
            figures.wall.append(took)
            figures.received = sum(_received()) - received


async def _poll(source: KafkaVolumeSource, memory: Memory) -> tuple[Memory, Decision]:
    observation = await source.observe(None, _TIMEOUT_S)
    assert isinstance(observation, Observation)
    memory = _FACTORS.fold(memory, observation)
    return memory, _FACTORS.decide(memory, observation.observed_at)


def _check(memory: Memory, decision: Decision, brokers: int) -> None:
    """A poll that failed would be a fast one."""
    volumes = sum(1 for _ in memory.volumes())
    assert decision.source is Source.OBSERVATION
    assert volumes == brokers * _VOLUMES


def _received() -> Iterator[int]:
    """The bytes that each TCP connection of this process has received so far."""
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        with suppress(OSError):
            # Neither a socket nor TCP, or gone meanwhile: an OSError.
            if not str(descriptor.readlink()).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(descriptor.name))) as connection:
                reported = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                yield struct.unpack_from("<Q", reported, _BYTES_RECEIVED)[0]
