"""The highest fill rate of each volume in the volume history of the last 7 days.

A rate is the growth of the used bytes between two readings that are an interval apart or more. If a
log dir's total bytes change, it is on another disk, so its rates begin anew.

An import repeats the sizes of a log dir until its next reading (docs/volume-history.md). Sizes that
are imported and equal to those before are therefore not a reading, for up to 10 minutes.

Example: /data1 and /data2 fill by 10 MB/s each. A file has readings of /data1 every minute, and of
/data2 every 5 minutes. The import repeats the sizes of /data2 four times, and its next
reading is 3 GB higher. The rate of /data2 is 3 GB in 5 minutes, not in the last of them.
"""

import time
from typing import Final

from sidecar.cli.doctor.facts import NotKnown
from sidecar.cli.history_import import ORIGIN
from sidecar.errors import SidecarError
from sidecar.history.reader import HistoryReader
from sidecar.settings import Settings
from sidecar.volumes import Reading, Volume

DEADLINE_S: Final = 60.0
"""Reading 7 days of 1,000 volumes takes about 40 s of CPU."""

_LATEST_S: Final = 7 * 86_400.0
_REPEATED_S: Final = 600.0


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
                    if place not in begun or volume.total_bytes != before.total_bytes:
                        begun[place] = seen.observed_at, volume
                    elif volume == before and seen.origin == ORIGIN and seconds <= _REPEATED_S:
                        continue
                    elif seconds >= interval_s:
                        rate = (before.available_bytes - volume.available_bytes) / seconds
                        rates[place] = max(rate, rates.get(place, rate))
                        begun[place] = seen.observed_at, volume
    except SidecarError as error:
        return NotKnown(str(error))
    return rates
