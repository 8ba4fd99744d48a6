"""A volume history with a saw-tooth, which retention causes.

Each volume fills, and every few hours retention deletes segments. What remains grows slowly.

Example: the use of broker 0's volume of 500 GB grows by 0.4 GB an hour, with teeth of 6 h.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from usage_pipeline.sample.settings import Sample

_EVERY: Final = timedelta(minutes=5)
_TOTAL: Final = 500_000_000_000
_TOOTH_S: Final = 6 * 3600


def write_volumes(folder: Path, sample: Sample) -> None:
    """Write hourly files with an observation in each line, up to the end of the request logs."""
    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {}
    for when, document in _observations(sample):
        name = f"volumes-sample-{when:%Y%m%dT%H}.jsonl"
        lines.setdefault(name, []).append(json.dumps(document) + "\n")
    for name, of_hour in lines.items():
        (folder / name).write_text("".join(of_hour))


def _observations(sample: Sample) -> Iterator[tuple[datetime, dict[str, object]]]:
    rng = np.random.default_rng(sample.seed + 1)
    end = sample.start + timedelta(seconds=sample.seconds)
    begin = end - timedelta(days=sample.history_days)
    for step in range(int((end - begin) / _EVERY) + 1):
        when = (begin + step * _EVERY).astimezone(UTC)
        passed_s = step * _EVERY.total_seconds()
        volumes = [
            {
                "broker_id": broker,
                "log_dir": "/var/lib/kafka/data",
                "total_bytes": _TOTAL,
                "available_bytes": _TOTAL - _used(broker, passed_s, float(rng.normal())),
            }
            for broker in range(sample.brokers)
        ]
        yield (
            when,
            {
                "time": when.isoformat().replace("+00:00", "Z"),
                "origin": "poll",
                "brokers": list(range(sample.brokers)),
                "volumes": volumes,
                "offline": [],
            },
        )


def _used(broker: int, passed_s: float, noise: float) -> int:
    left = 0.5 + 0.05 * broker + (0.8e-3 + 0.4e-3 * broker) * passed_s / 3600
    tooth = 0.08 * ((passed_s + 1700 * broker) % _TOOTH_S) / _TOOTH_S
    return min(_TOTAL, round(_TOTAL * (left + tooth) + noise * 50e6))
