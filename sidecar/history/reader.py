"""Reads a history back: observations in the order of time, whoever wrote them.

It goes hour by hour, so that of a year one hour is in memory. Readings of several sidecars are put
together as if one had seen all of them. A line says who answered, and not who is in the cluster: a
broker that no line has for the validity is taken for one that has left.

Example: kafka-0 and kafka-1 each wrote 60 lines in an hour: 120 observations, by their times.
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
        folder: where histories are.
        validity_s: for how long a broker counts that no line has, seconds.
        damaged_lines: what could not be read so far: torn by a crash, or no line of a history.
    """

    folder: Path
    validity_s: float
    damaged_lines: int = 0
    _last_seen: dict[int, float] = field(default_factory=dict)

    def observations(self) -> Iterator[Observation]:
        """All of them, by time.

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
