"""Checks before Spark starts, because the start takes ten seconds.

They find a missing log, an unknown time zone or a folder that another run writes to. The job checks
tables in HDFS and in object storage itself.

Example: ``pipeline usage --out nowhere`` fails in half a second, because there are no requests.
"""

import os
import re
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sidecar.errors import SettingsError, SidecarError
from usage_pipeline.cli.job_options import JobOptions
from usage_pipeline.ingest.paths import Zones
from usage_pipeline.tables.days import asked_days, no_requests
from usage_pipeline.tables.schemas import (
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    SILVER_REQUEST,
    SILVER_VOLUME,
    Table,
)

if TYPE_CHECKING:
    # Not at run time, because the help of a command does not need them.
    from usage_pipeline.tables.commits import Pinned
    from usage_pipeline.tables.folder import Folder

_MASTER: Final = re.compile(
    r"local|local\[(?:\*|[1-9]\d*)(?:,\s*[1-9]\d*)?\]|local-cluster\[.+\]|yarn|(?:spark|k8s)://\S+"
)
_STANDALONE: Final = "spark://"
_ANSWER_S: Final = 5.0


class NotThereError(SidecarError):
    """An input of a command does not exist."""


def check_master(master: str | None) -> None:
    """Check the address of the Spark master, and that it runs.

    Args:
        master: the option; None for Spark's variable MASTER, if it is set.

    Raises:
        SettingsError: it is no address of a master.
        NotThereError: no process listens there. Spark would report this after a minute.
    """
    master = (os.environ.get("MASTER") or None) if master is None else master
    if master is None:
        return
    if not _MASTER.fullmatch(master):
        raise SettingsError(
            (f"--master {master}: use local[4], spark://host:7077, yarn or k8s://...",)
        )
    if master.startswith(_STANDALONE):
        several = master.removeprefix(_STANDALONE).split(",")
        if not any(_listens(each) for each in several):
            raise NotThereError(
                f"no Spark master answers at {master}; start it or correct --master"
            )


def check_batch(out: str, stages: Sequence[str] = (), *, reads_logs: bool = False) -> None:
    """Check that no other run writes to a folder of tables, and no stream the same tables.

    Args:
        out: the folder.
        stages: the names of the run's stages.
        reads_logs: whether the run reads request logs.

    Raises:
        SidecarError: a run writes to it, or a stream the same tables.
    """
    from usage_pipeline.batch.job import tables_of_logs  # noqa: PLC0415 - of the extra
    from usage_pipeline.batch.stages import Stage  # noqa: PLC0415 - as above
    from usage_pipeline.tables.writers import refuse_batch  # noqa: PLC0415 - as above

    refuse_batch(_free(out), tables_of_logs(map(Stage, stages), reads_logs=reads_logs))


def check_stream(out: str) -> None:
    """Check that batch runs did not come first, and that no other stream writes to a folder.

    Raises:
        SidecarError: they did, or a stream writes to it.
    """
    from usage_pipeline.tables.lease import STREAM  # noqa: PLC0415 - of the extra
    from usage_pipeline.tables.writers import refuse_stream  # noqa: PLC0415 - as above

    refuse_stream(_free(out, STREAM))


def check_tables(job: JobOptions, stages: Sequence[str], *, candidates: int = 0) -> None:
    """Check that the tables that stages read exist.

    Args:
        job: the folder and the time range.
        stages: names in order; if the first is "silver", it creates the tables.
        candidates: the number of candidate quotas of a replay.

    Raises:
        NotThereError: a table is missing, or has no rows in the time range.
    """
    if "silver" in stages:
        return
    from usage_pipeline.tables.commits import is_finished, pinned  # noqa: PLC0415 - of the extra
    from usage_pipeline.tables.folder import Folder  # noqa: PLC0415 - as above
    from usage_pipeline.tables.table_files import day_of  # noqa: PLC0415 - as above

    out = job.out
    folder = Folder.parse(out)
    folder.check_store()
    tables = pinned(folder)
    if not is_finished(tables):
        # The job first completes pending commits, which may create the tables.
        return
    if {"usage", "replay"} & set(stages):
        of_files = (
            day_of(SILVER_REQUEST, file)
            for file in tables.files(SILVER_REQUEST)
            if job.cluster_id in (None, file.cluster)
        )
        days = sorted({day for day in of_files if day is not None})
        if not asked_days(days, job.since, job.until):
            raise NotThereError(no_requests(days))
    if "replay" in stages and candidates:
        _need(tables, GOLD_USAGE_1S, f"pipeline usage --out {out}`, or use `--candidates 0")
    if "recommend" in stages:
        _need(tables, GOLD_USAGE_1S, f"pipeline usage --out {out}")
        _need(tables, GOLD_REPLAY, f"pipeline replay --out {out}")
    if "costs" in stages:
        _need(tables, GOLD_USAGE_1S, f"pipeline usage --out {out}")
    if "forecast" in stages:
        _need(tables, SILVER_VOLUME, f"pipeline silver --volumes PATH --out {out}")


def check_logs(
    path: str, zones: Iterable[str], broker_pattern: str | None, cluster: str | None
) -> None:
    """Check that request logs exist, and that their brokers and clusters are known.

    Raises:
        SidecarError: a log is missing, or its broker or cluster is unknown.
    """
    from usage_pipeline.ingest.stored_logs import log_files  # noqa: PLC0415 - of the extra

    log_files(path, Zones.parse(zones), broker_pattern, cluster)


def check_volumes(path: str) -> None:
    """Check that the volume history exists.

    Raises:
        SidecarError: it does not exist.
    """
    from usage_pipeline.ingest.stored_logs import files_of  # noqa: PLC0415 - of the extra

    if not files_of(path):
        raise NotThereError(f"{path} has no volume history; name its folder")


def _free(out: str, lease: str | None = None) -> "Folder":
    """Return the folder, which is writable and which no other writer of the lease writes to."""
    from usage_pipeline.tables.commits import pinned, refuse_earlier  # noqa: PLC0415 - of the extra
    from usage_pipeline.tables.folder import Folder  # noqa: PLC0415 - as above
    from usage_pipeline.tables.lease import BATCH, refuse_leased  # noqa: PLC0415 - as above

    folder = Folder.parse(out)
    if folder.here is not None:
        _refuse_unwritable(out, folder.here)
    folder.check_store()
    refuse_leased(folder, name=lease or BATCH)
    refuse_earlier(pinned(folder))
    return folder


def _refuse_unwritable(out: str, folder: Path) -> None:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise SettingsError((f"--out {out}: {there} is a file; name a folder",))
    if not os.access(there, os.W_OK | os.X_OK):
        raise SettingsError((f"--out {out}: {there} is not writable; name another folder",))


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return False
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S):
            return True
    except OSError:
        return False


def _need(tables: "Pinned", table: Table, command: str) -> None:
    if table.name not in tables.versions:
        raise NotThereError(
            f"{tables.folder} has no table {table.name}; create it with"
            f" `throttle-sidecar {command}`"
        )
