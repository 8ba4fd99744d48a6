"""The request logs that a run reads."""

import os
from dataclasses import dataclass, replace

from usage_pipeline.ingest.log_parts import SPLIT_BYTES
from usage_pipeline.ingest.paths import ALL_UTC, LogFile, Zones
from usage_pipeline.ingest.stored_logs import identified, log_files


@dataclass(frozen=True, slots=True)
class RequestLogs:
    """The request logs that a run reads.

    Attributes:
        path: a file, a folder or a glob; on this machine or in object storage.
        zones: the time zones of the brokers' clocks.
        broker_pattern: a regular expression with a group named ``broker``; None means the usual
            patterns.
        layout: the pattern of their layout in log4j; None if it is not known.
        split_bytes: the size of a part of a plain file, above 0.
    """

    path: str
    zones: Zones = ALL_UTC
    broker_pattern: str | None = None
    layout: str | None = None
    split_bytes: int = SPLIT_BYTES

    def files(self, cluster: str | None = None) -> tuple[LogFile, ...]:
        """Return the current files, of one cluster or of all. They stay readable after a rename.

        A log on this machine with several names, such as a link or a complete copy, is one file.

        Raises:
            SidecarError: as ``stored_logs.log_files`` does.
        """
        files: list[LogFile] = []
        seen: set[object] = set()
        for listed in log_files(self.path, self.zones, self.broker_pattern, cluster):
            file = replace(identified(listed), layout=self.layout)
            # A log grows before its link is read, and two logs may begin with the same bytes.
            names = (os.path.realpath(file.path), (file.head, file.size)) if file.head else ()
            keys = {(file.cluster, file.broker, name) for name in names}
            if seen.isdisjoint(keys):
                files.append(file)
            seen |= keys
        return tuple(files)
