"""The request logs that a run reads."""

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

        A log on this machine that has several names, such as a link or a copy, is one file.

        Raises:
            SidecarError: as ``stored_logs.log_files`` does.
        """
        files: dict[object, LogFile] = {}
        for listed in log_files(self.path, self.zones, self.broker_pattern, cluster):
            file = replace(identified(listed), layout=self.layout)
            content = file.head and (file.cluster, file.broker, file.head, file.size)
            files.setdefault(content or file.path, file)
        return tuple(files.values())
