"""Writes a sample in slices of time, with each broker's lines in order, to hourly files.

A slice has about 20,000 lines for each broker, so memory does not grow with the sample's size. The
number of lines in a slice follows from the remaining size and the remaining time, so the sample has
the requested size whatever the length of lines.

Example: 100 MB of 3 brokers over 2 h are 6 slices of 20 minutes, in files
``request-logs/broker-0/kafka-request.log.2026-01-05-08`` and so on.
"""

import json
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from usage_pipeline.sample.admin import AdminLine, Admins
from usage_pipeline.sample.flows import Flow, flows
from usage_pipeline.sample.holding import Holding
from usage_pipeline.sample.limits import LINE_BYTES, RAISED, limits
from usage_pipeline.sample.lines import Batch, Times, drawn_batch, rendered
from usage_pipeline.sample.settings import Sample
from usage_pipeline.sample.shapes import Ints
from usage_pipeline.sample.snapshots import capacity_snapshot, quota_snapshot
from usage_pipeline.sample.volumes import write_volumes

_SLICE_LINES: Final = 20_000
_LEAST_SLICES: Final = 6


@dataclass(frozen=True, slots=True)
class Written:
    """The files that were written.

    Attributes:
        lines: the number of lines in the request logs.
        bytes: the size of the request logs.
        request_logs: the folder with a folder for each broker.
        volumes: the folder of the volume history.
        quotas: the snapshot of quotas; its time is the sample's start.
        capacity: the snapshot of the capacity.
    """

    lines: int
    bytes: int
    request_logs: Path
    volumes: Path
    quotas: Path
    capacity: Path


def write_sample(out: Path, sample: Sample) -> Written:
    """Write a sample; files of an earlier sample are overwritten."""
    logs = out / "request-logs"
    writer = _Writer(logs, sample)
    seconds = sample.seconds
    expected = sample.size_bytes / LINE_BYTES / sample.brokers
    slices = min(seconds, max(_LEAST_SLICES, round(expected / _SLICE_LINES)))
    edges = np.linspace(0, seconds, slices + 1).round().astype(int) + sample.start_s
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        writer.slice(begin, end, edges[-1].item())
    volumes = out / "volumes"
    write_volumes(volumes, sample)
    quotas, capacity = out / "quotas.json", out / "capacity.json"
    quotas.write_text(json.dumps(quota_snapshot(sample), indent=2) + "\n")
    # Commands use a file's time as the time of the snapshot, unless an option states another one.
    os.utime(quotas, (sample.start_s, sample.start_s))
    capacity.write_text(json.dumps(capacity_snapshot(sample), indent=2) + "\n")
    return Written(writer.lines, writer.bytes, logs, volumes, quotas, capacity)


class _Writer:
    def __init__(self, logs: Path, sample: Sample) -> None:
        self._logs = logs
        self._sample = sample
        self._rng = np.random.default_rng(sample.seed)
        self._times = Times(self._rng)
        self._flows = flows(sample.brokers, sample.clients)
        self._started: set[Path] = set()
        limited = limits(sample)
        first = limited[0]
        raised = replace(first, value=first.value * RAISED)
        raise_ms = (sample.start_s + sample.seconds // 2) * 1000
        self._holding = [Holding(limited, raise_ms, raised) for _ in range(sample.brokers)]
        self._admins = Admins(raise_ms, raised)
        self.lines = 0
        self.bytes = 0

    def slice(self, begin_s: int, end_s: int, last_s: int) -> None:
        """Write all brokers' lines from one second until before another."""
        line_bytes = self.bytes / self.lines if self.lines else LINE_BYTES
        left = max(0.0, self._sample.size_bytes - self.bytes) / line_bytes
        count = left * (end_s - begin_s) / (last_s - begin_s)
        for broker in range(self._sample.brokers):
            self._broker(broker, begin_s, end_s, count / self._sample.brokers)

    def _broker(self, broker: int, begin_s: int, end_s: int, count: float) -> None:
        mine = [flow for flow in self._flows if flow.brokers is None or broker in flow.brokers]
        shares = sum(flow.share for flow in mine)
        batches = [
            drawn_batch(flow, at_ms, self._rng, self._times)
            for flow in mine
            for at_ms in (self._arrivals(flow, begin_s, end_s, count * flow.share / shares),)
            if len(at_ms)
        ]
        batches = self._holding[broker].hold(batches, self._times)
        admin = [] if broker else list(self._admins.lines(begin_s, end_s, self._rng))
        self._write(broker, begin_s, batches, admin)

    def _arrivals(self, flow: Flow, begin_s: int, end_s: int, count: float) -> Ints:
        seconds = np.arange(begin_s, end_s)
        activity = flow.activity(seconds.astype(np.float64))
        per_second = self._rng.poisson(activity * (count / activity.sum()))
        at_ms = np.repeat(seconds, per_second) * 1000
        return np.sort(at_ms + self._rng.integers(0, 1000, len(at_ms)))

    def _write(
        self, broker: int, begin_s: int, batches: list[Batch], admin: list[AdminLine]
    ) -> None:
        stamps = _Stamps()
        lines = [line.text for line in admin]
        for batch in batches:
            lines += rendered(batch, stamps, self._times, broker)
        if not lines:
            return
        log_ms = np.concatenate(
            [[line.log_ms for line in admin], *(batch.log_ms for batch in batches)]
        )
        order = np.argsort(log_ms, kind="stable")
        text = "".join([lines[at] for at in order.tolist()]).encode()
        hour = datetime.fromtimestamp(begin_s, UTC).strftime("%Y-%m-%d-%H")
        path = self._logs / f"broker-{broker}" / f"kafka-request.log.{hour}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab" if path in self._started else "wb") as file:
            file.write(text)
        self._started.add(path)
        self.lines += len(lines)
        self.bytes += len(text)


class _Stamps(dict[int, str]):
    def __missing__(self, second: int) -> str:
        text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")
        self[second] = text
        return text
