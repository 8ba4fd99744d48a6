"""What the pipeline's commands refuse before Spark starts, which takes ten seconds.

Whatever is known without Spark: a log that is not there, a time zone that nobody knows, a folder
that another run writes to. Tables in HDFS or in object storage are left to the job.

Example: ``pipeline usage --out nowhere`` says in half a second that there are no requests.
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
    # Not at run time: a command's help needs none of the extra.
    from usage_pipeline.tables.commits import Pinned
    from usage_pipeline.tables.folder import Folder

_MASTER: Final = re.compile(
    r"local|local\[(?:\*|[1-9]\d*)(?:,\s*[1-9]\d*)?\]|local-cluster\[.+\]|yarn|(?:spark|k8s)://\S+"
)
_STANDALONE: Final = "spark://"
_ANSWER_S: Final = 5.0


class NotThereError(SidecarError):
    """What a command reads is not there."""


def check_master(master: str | None) -> None:
    """Refuses what is no master of Spark's, and one that isn't up.

    Args:
        master: from the command line; None: Spark's own variable MASTER, if it is set.

    Raises:
        SettingsError: it isn't.
        NotThereError: nothing listens there; Spark takes a minute to say so.
    """
    master = (os.environ.get("MASTER") or None) if master is None else master
    if master is None:
        return
    if not _MASTER.fullmatch(master):
        raise SettingsError(
            (f"--master {master}: name one as local[4], spark://host:7077, yarn or k8s://...",)
        )
    if master.startswith(_STANDALONE):
        several = master.removeprefix(_STANDALONE).split(",")
        if not any(_listens(each) for each in several):
            raise NotThereError(f"no Spark master answers at {master}: is it up?")


def check_batch(out: str) -> None:
    """Refuses a folder of tables that a stream or another run writes to.

    Raises:
        SidecarError: it does.
    """
    from usage_pipeline.tables.writers import refuse_batch  # noqa: PLC0415 - of the extra

    refuse_batch(_free(out))


def check_stream(out: str) -> None:
    """Refuses a folder of tables that batch runs or another stream write to.

    Raises:
        SidecarError: they do.
    """
    from usage_pipeline.tables.writers import refuse_stream  # noqa: PLC0415 - of the extra

    refuse_stream(_free(out))


def check_tables(job: JobOptions, stages: Sequence[str], *, candidates: int = 0) -> None:
    """Refuses stages that lack what those before them make.

    Args:
        job: where the tables are, and what is requested of them.
        stages: by name, in their order; if the first is "silver", there will be tables.
        candidates: how many quotas are to be tried in a replay.

    Raises:
        NotThereError: a table is missing, or has nothing of the requested time.
    """
    if "silver" in stages:
        return
    from usage_pipeline.tables.commits import is_finished, pinned  # noqa: PLC0415 - of the extra
    from usage_pipeline.tables.folder import Folder  # noqa: PLC0415 - as above
    from usage_pipeline.tables.table_files import day_of  # noqa: PLC0415 - as above

    out = job.out
    folder = Folder.of(out)
    folder.check_store()
    tables = pinned(folder)
    if not is_finished(tables):
        # The job finishes them first, and then there may be all that is wanted.
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
        _need(tables, GOLD_USAGE_1S, f"pipeline usage --out {out}`, or say `--candidates 0")
    if "recommend" in stages:
        _need(tables, GOLD_USAGE_1S, f"pipeline usage --out {out}")
        _need(tables, GOLD_REPLAY, f"pipeline replay --out {out}")
    if "forecast" in stages:
        _need(tables, SILVER_VOLUME, f"pipeline silver --volumes PATH --out {out}")


def check_logs(
    path: str, zones: Iterable[str], broker_pattern: str | None, cluster: str | None = None
) -> None:
    """Refuses request logs that are not there, or whose broker or cluster is unknown.

    Raises:
        SidecarError: they aren't, or it is.
    """
    from usage_pipeline.ingest.stored_logs import log_files  # noqa: PLC0415 - of the extra

    log_files(path, Zones.of(zones), broker_pattern, cluster)


def check_volumes(path: str) -> None:
    """Refuses a volume history that is not there.

    Raises:
        SidecarError: it isn't.
    """
    from usage_pipeline.ingest.stored_logs import files_of  # noqa: PLC0415 - of the extra

    if not files_of(path):
        raise NotThereError(f"{path}: there is no volume history; name its folder")


def _free(out: str) -> "Folder":
    """The folder, which can be written to, and to which nobody writes now."""
    from usage_pipeline.tables.commits import pinned  # noqa: PLC0415 - of the extra
    from usage_pipeline.tables.folder import Folder  # noqa: PLC0415 - as above
    from usage_pipeline.tables.lease import refuse_leased  # noqa: PLC0415 - as above

    folder = Folder.of(out)
    if folder.here is not None:
        _refuse_unwritable(out, folder.here)
    folder.check_store()
    refuse_leased(folder)
    pinned(folder)
    return folder


def _refuse_unwritable(out: str, folder: Path) -> None:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise SettingsError((f"--out {out}: {there} is a file; name a folder",))
    if not os.access(there, os.W_OK | os.X_OK):
        raise SettingsError((f"--out {out}: nothing can be written to {there}; name another",))


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
            f"there is no table {table.name} in {tables.folder}: make it with"
            f" `throttle-sidecar {command}`"
        )
