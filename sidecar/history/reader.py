"""Reads a history: the observations of all sidecars in the order of time.

It reads hour by hour, so that only one hour is in memory. It combines the readings of several
sidecars as if one sidecar had seen all of them. A line names the brokers that answered, but not all
brokers of the cluster. If no line has a broker for the validity duration, the broker counts as
removed.

Example: kafka-0 and kafka-1 each wrote 60 lines in an hour. The reader returns 120 observations,
sorted by time.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from sidecar.errors import SidecarError
from sidecar.history.folder import hours
from sidecar.history.volume_line import VolumeLine
from sidecar.volumes import Membership, Observation, OfflineLogDir, Reading, Volume

_OFFLINE: Final = "it was offline"
_DECODER: Final = msgspec.json.Decoder(VolumeLine)


@dataclass(slots=True)
class HistoryReader:
    """Reads a folder.

    Attributes:
        folder: the folder of the histories.
        validity_s: how long a broker counts after its last line, in seconds.
        damaged_lines: how many lines could not be read so far, because a crash cut them or because
            they have another form.
    """

    folder: Path
    validity_s: float
    damaged_lines: int = 0
    _last_seen: dict[int, float] = field(default_factory=dict)

    def observations(self) -> Iterator[Observation]:
        """Yield all observations, sorted by time.

        Raises:
            SidecarError: the folder or a file can't be read.
        """
        try:
            for paths in hours(self.folder):
                lines = {(line.time, line.origin): line for line in self._lines(paths)}
                for (time, _), line in sorted(lines.items()):
                    yield self._observation(datetime.fromisoformat(time).timestamp(), line)
        except OSError as error:
            raise SidecarError(f"the history in {self.folder} can't be read: {error}") from error

    def _lines(self, paths: Iterable[Path]) -> Iterator[VolumeLine]:
        for path in paths:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                try:
                    for text in file:
                        if not text.isspace():
                            line = self._line(text)
                            if line is not None:
                                yield line
                except (EOFError, zlib.error, gzip.BadGzipFile):
                    self.damaged_lines += 1

    def _line(self, text: bytes) -> VolumeLine | None:
        try:
            line = _DECODER.decode(text)
            datetime.fromisoformat(line.time)
        except (msgspec.MsgspecError, ValueError):
            self.damaged_lines += 1
            return None
        return line

    def _observation(self, at: float, line: VolumeLine) -> Observation:
        self._last_seen.update(dict.fromkeys(line.brokers, at))
        self._last_seen = {
            broker: seen for broker, seen in self._last_seen.items() if at <= seen + self.validity_s
        }
        volumes: dict[int, list[Volume]] = {broker: [] for broker in line.brokers}
        offline: dict[int, list[OfflineLogDir]] = {broker: [] for broker in line.brokers}
        for each in line.volumes:
            volumes.setdefault(each.broker_id, []).append(each)
        for log_dir in line.offline:
            known = OfflineLogDir(log_dir.log_dir, _OFFLINE)
            offline.setdefault(log_dir.broker_id, []).append(known)
        answers = {
            broker: Reading(broker, at, tuple(volumes[broker]), tuple(offline[broker]))
            for broker in line.brokers
        }
        members = Membership(None, dict.fromkeys(self._last_seen, ""))
        return Observation(at, line.origin, members, answers)
