"""Reads a history: the observations of all sidecars in the order of time.

It reads hour by hour, so that only one hour is in memory. It combines the readings of several
sidecars as if one sidecar had seen all of them. A line names the brokers that answered, but not all
brokers of the cluster. If no line has a broker for the validity duration, the broker counts as
removed.

Lines with the same time and origin are one observation, so that other programs can write a line for
each volume. Clusters have brokers with the same ids, so a folder with lines of two clusters is
refused.

Example: kafka-0 and kafka-1 each wrote 60 lines in an hour. The reader returns 120 observations,
sorted by time.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, Final

from sidecar.errors import SidecarError
from sidecar.history.folder import hours
from sidecar.history.volume_line import LineError, VolumeLine, merged, read_line
from sidecar.volumes import Membership, Observation, OfflineLogDir, Reading, Volume

_OFFLINE: Final = "it was offline"


@dataclass(slots=True)
class HistoryReader:
    """Reads a folder.

    Attributes:
        folder: the folder of the histories.
        validity_s: how long a broker counts after its last line, in seconds.
        since_s: earlier observations are not read, in epoch seconds.
        damaged_lines: how many lines could not be read so far, because a crash cut them or because
            they have another form.
        first_damage: file, line and field of the first of them, and what is wrong; "" before one.
    """

    folder: Path
    validity_s: float
    since_s: float = 0.0
    damaged_lines: int = 0
    first_damage: str = ""
    _last_seen: dict[int, float] = field(default_factory=dict)
    _cluster: tuple[str, str] | None = None

    def observations(self) -> Iterator[Observation]:
        """Yield all observations, sorted by time.

        Raises:
            SidecarError: the folder or a file can't be read, or it has lines of two clusters.
        """
        try:
            for paths in hours(self.folder, self.since_s):
                lines: dict[tuple[float, str], list[VolumeLine]] = {}
                for at, line in self._lines(paths):
                    if at >= self.since_s:
                        lines.setdefault((at, line.origin), []).append(line)
                for (at, _), same in sorted(lines.items(), key=itemgetter(0)):
                    yield self._observation(at, merged(same))
        except OSError as error:
            raise SidecarError(f"the history in {self.folder} can't be read: {error}") from error

    def _lines(self, paths: Iterable[Path]) -> Iterator[tuple[float, VolumeLine]]:
        for path in paths:
            # The sidecar may have compressed the file since the folder was listed, or removed it.
            with suppress(FileNotFoundError), _opened(path) as file:
                number = 0
                try:
                    for number, text in enumerate(file, 1):
                        if text.isspace():
                            continue
                        try:
                            at, line = read_line(text)
                        except LineError as error:
                            self._skip(f"{path.name}, line {number}: {error}")
                            continue
                        self._check_cluster(line.cluster_id, path.name)
                        yield at, line
                except (EOFError, zlib.error, gzip.BadGzipFile):
                    self._skip(f"{path.name}, after line {number}: the file is cut off")

    def _skip(self, problem: str) -> None:
        self.damaged_lines += 1
        self.first_damage = self.first_damage or problem

    def _check_cluster(self, cluster_id: str | None, name: str) -> None:
        if cluster_id is None:
            return
        if self._cluster is None:
            self._cluster = cluster_id, name
        elif cluster_id != self._cluster[0]:
            before = " (".join(self._cluster)
            raise SidecarError(
                f"the history in {self.folder} is of two clusters: {before}) and {cluster_id}"
                f" ({name}). Their brokers have the same ids, so move the files, or the lines, of"
                " one cluster to another folder"
            )

    def _observation(self, at: float, line: VolumeLine) -> Observation:
        brokers = dict.fromkeys(line.brokers)
        brokers |= dict.fromkeys(each.broker_id for each in line.volumes)
        brokers |= dict.fromkeys(each.broker_id for each in line.offline)
        self._last_seen.update(dict.fromkeys(brokers, at))
        self._last_seen = {
            broker: seen for broker, seen in self._last_seen.items() if at <= seen + self.validity_s
        }
        volumes: dict[int, list[Volume]] = {broker: [] for broker in brokers}
        offline: dict[int, list[OfflineLogDir]] = {broker: [] for broker in brokers}
        for each in line.volumes:
            volumes[each.broker_id].append(each)
        for log_dir in line.offline:
            known = OfflineLogDir(log_dir.log_dir, _OFFLINE)
            offline[log_dir.broker_id].append(known)
        answers = {
            broker: Reading(broker, at, tuple(volumes[broker]), tuple(offline[broker]))
            for broker in brokers
        }
        members = Membership(None, dict.fromkeys(self._last_seen, ""))
        return Observation(at, line.origin, members, answers)


def _opened(path: Path) -> BinaryIO | gzip.GzipFile:
    if path.suffix != ".gz":
        try:
            return path.open("rb")
        except FileNotFoundError:
            path = path.with_name(f"{path.name}.gz")
    return gzip.open(path)
