"""The highest fill rate of each volume in the volume history of the last 7 days.

A rate is the growth of the used bytes between two readings that are an interval apart or more. If a
log dir's total bytes change by more than a hundredth, it is on another disk, so its rates begin
anew.

An import repeats the sizes of a log dir until its next reading (docs/volume-history.md). If the log
dirs of a broker are read at different times, the rate of one that is read less often is too high.

Example: a log dir fills by 3 GB in 5 minutes: 10 MB/s. Then it is on a disk of half the size. The
rate stays 10 MB/s, although 500 GB less are available.
"""

import time
from typing import Final

from sidecar.cli.doctor.facts import NotKnown
from sidecar.errors import SidecarError
from sidecar.history.reader import HistoryReader
from sidecar.settings import Settings
from sidecar.volumes import Reading, Volume

DEADLINE_S: Final = 60.0
"""Reading 7 days of 1,000 volumes takes about 40 s of CPU."""

_LATEST_S: Final = 7 * 86_400.0
_RESIZED: Final = 0.01


def history_rates(
    settings: Settings, now_s: float, deadline: float
) -> dict[tuple[int, str], float] | NotKnown:
    """Return the rates by broker and log dir, bytes/s; empty without a history.

    Args:
        settings: the folder, the interval and the validity.
        now_s: the time now, in epoch seconds.
        deadline: until when to read, in ``time.monotonic`` seconds.
    """
    folder, interval_s = settings.history_dir, settings.check_interval_s
    rates: dict[tuple[int, str], float] = {}
    if folder is None or interval_s <= 0:
        return rates
    begun: dict[tuple[int, str], tuple[float, Volume]] = {}
    try:
        reader = HistoryReader(folder, settings.validity_s, now_s - _LATEST_S)
        for seen in reader.observations():
            if time.monotonic() > deadline:
                return NotKnown(f"reading the history in {folder} takes too long")
            for reading in seen.answers.values():
                for volume in reading.volumes if isinstance(reading, Reading) else ():
                    place = volume.place
                    at, before = begun.get(place, (seen.observed_at, volume))
                    seconds = seen.observed_at - at
                    resized = abs(volume.total_bytes - before.total_bytes)
                    if place not in begun or resized > before.total_bytes * _RESIZED:
                        begun[place] = seen.observed_at, volume
                    elif seconds >= interval_s:
                        rate = (volume.used_bytes - before.used_bytes) / seconds
                        rates[place] = max(rate, rates.get(place, rate))
                        begun[place] = seen.observed_at, volume
    except SidecarError as error:
        return NotKnown(str(error))
    return rates
