"""How many decisions a second each quota algorithm makes, beside Kafka's own classes on one core.

Every algorithm gets the same: 1 every millisecond at a quota of 500 per second over 11 samples of
1 s, so half of it is too much, and waits are reckoned too. Ours and then Kafka's run alone on the
idlest core, Java's compiler and collector as well. Kafka has no burst-spreading rate.
"""

import asyncio
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.harness.machine import quiet_cores
from benchmarks.rows import Row, median_row
from kafka_lab.jars import DEFAULT_VERSION, jars, java
from sidecar.formats.cache_folder import cache_folder
from sidecar.quotas.mutations.burst_rate import BurstRate
from sidecar.quotas.rate import QuotaWindow
from sidecar.quotas.token_bucket import TokenBucket
from tests.support.java import compiled
from usage_pipeline.replay.rate_quota import RateQuota

_WINDOW: Final = QuotaWindow()
_LIMIT: Final = 500.0
_AMOUNT: Final = 1.0
_GAP_MS: Final = 1
_ROUNDS: Final = 5
_ROUND_S: Final = 1.0
_CHECKED_EVERY: Final = 1000
_START_MS: Final = 1_700_000_000_000
_PROGRAM: Final = "QuotaSpeed"
_TIMEOUT_S: Final = 120.0

Decide = Callable[[int], int]
"""One decision at a time, epoch ms; returns the wait, ms."""


def run() -> list[Row]:
    """Measures ours, then Kafka's."""
    os.sched_setaffinity(0, {quiet_cores(1)[0]})
    ours = {name: _speeds(decide) for name, decide in _deciders().items()}
    theirs = _kafka()
    rows = []
    for name, speeds in ours.items():
        rows.append(median_row(f"{name}, ours", speeds, "decisions/s"))
        if name in theirs:
            rows.append(median_row(f"{name}, Kafka's in Java", theirs[name], "decisions/s"))
    return rows


def _deciders() -> Mapping[str, Decide]:
    rate = RateQuota(_LIMIT, _WINDOW)
    bucket = TokenBucket(_LIMIT, _WINDOW, _START_MS)
    burst = BurstRate(_LIMIT, _WINDOW)
    return {
        "sampled rate": lambda now_ms: rate.record(_AMOUNT, now_ms),
        "token bucket": lambda now_ms: bucket.admit(_AMOUNT, now_ms, strict=True).throttle_ms,
        "burst-spreading rate": lambda now_ms: (
            burst.admit(_AMOUNT, now_ms, strict=True).throttle_ms
        ),
    }


def _speeds(decide: Decide) -> list[float]:
    """Decisions per second in each round; the first round is not counted, as in Java."""
    now_ms = _START_MS
    throttled_ms = 0
    speeds = []
    for _ in range(1 + _ROUNDS):
        decisions = 0
        began = time.perf_counter()
        while time.perf_counter() - began < _ROUND_S:
            for _ in range(_CHECKED_EVERY):
                now_ms += _GAP_MS
                throttled_ms += decide(now_ms)
            decisions += _CHECKED_EVERY
        speeds.append(decisions / (time.perf_counter() - began))
    assert throttled_ms > 0, "nobody was throttled: this measures half of it"
    return speeds[1:]


def _kafka() -> dict[str, list[float]]:
    """The same of Kafka's classes: they share this process's core."""
    libraries, classes = asyncio.run(_prepared())
    numbers = (_ROUNDS, _ROUND_S, _WINDOW.samples, _WINDOW.window_ms, _LIMIT, _AMOUNT, _GAP_MS)
    options = ("-Xmx64m", "-XX:+UseSerialGC", "-Dlog4j2.level=OFF", "-cp")
    done = subprocess.run(
        [
            java(os.environ),
            *options,
            f"{classes}:{libraries}/*",
            _PROGRAM,
            *map(str, numbers),
        ],
        stdout=subprocess.PIPE,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
    )
    speeds = defaultdict(list)
    for line in done.stdout.splitlines():
        name, per_second = line.rsplit(" ", 1)
        speeds[name].append(float(per_second))
    return speeds


async def _prepared() -> tuple[Path, Path]:
    libraries = await jars(DEFAULT_VERSION, cache_folder(os.environ))
    return libraries, await compiled(_PROGRAM, libraries)
