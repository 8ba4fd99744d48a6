"""What the pipeline's commands refuse before Spark starts, which takes ten seconds.

Whatever is known without Spark: a log that is not there, a time zone that nobody knows, a folder
that another run writes to. Tables in HDFS or in object storage are left to the job.

Example: ``pipeline usage --out nowhere`` says in half a second that there are no requests.
"""

import os
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sidecar.errors import SettingsError, SidecarError
from sidecar.pipeline.ingest.paths import Zones
from sidecar.pipeline.tables.days import asked_days, no_requests
from sidecar.pipeline.tables.lock import refuse_locked
from sidecar.pipeline.tables.schemas import (
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    SILVER_REQUEST,
    SILVER_VOLUME,
    Table,
)
from sidecar.pipeline.tables.writers import refuse_batch, refuse_stream

_MASTER: Final = re.compile(
    r"local|local\[(?:\*|[1-9]\d*)(?:,\s*[1-9]\d*)?\]|local-cluster\[.+\]|yarn|(?:spark|k8s)://\S+"
)
_STANDALONE: Final = "spark://"
_ANSWER_S: Final = 5.0
_OF_HADOOP: Final = ("PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""With one of these a path without a scheme may be of HDFS."""
_DAY: Final = "dt="
_WILDCARDS: Final = re.compile(r"[*?\[]")


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
    _check_folder(out, refuse_batch)


def check_stream(out: str) -> None:
    """Refuses a folder of tables that batch runs or another stream write to.

    Raises:
        SidecarError: they do.
    """
    _check_folder(out, refuse_stream)


def check_tables(
    out: str,
    stages: Sequence[str],
    since: datetime | None,
    until: datetime | None,
    *,
    candidates: int = 0,
) -> None:
    """Refuses stages that lack what those before them make.

    Args:
        out: the folder of the tables.
        stages: by name, in their order; if the first is "silver", there will be tables.
        since: UTC; None for no bound.
        until: UTC; None for no bound.
        candidates: how many quotas are to be tried in a replay.

    Raises:
        NotThereError: a table is missing, or has nothing of the requested time.
    """
    folder = tables_here(out)
    if folder is None or "silver" in stages:
        return
    if {"usage", "replay"} & set(stages):
        days = _days(folder / SILVER_REQUEST.name)
        if not asked_days(days, since, until):
            raise NotThereError(no_requests(days))
    if "replay" in stages and candidates:
        _need(folder, GOLD_USAGE_1S, f"pipeline usage --out {out}`, or say `--candidates 0")
    if "recommend" in stages:
        _need(folder, GOLD_USAGE_1S, f"pipeline usage --out {out}")
        _need(folder, GOLD_REPLAY, f"pipeline replay --out {out}")
    if "forecast" in stages:
        _need(folder, SILVER_VOLUME, f"pipeline silver --volumes PATH --out {out}")


def check_logs(path: str, zones: Iterable[str], broker_pattern: str | None) -> None:
    """Refuses request logs that are not there, or whose broker is unknown.

    Raises:
        SidecarError: they aren't, or it is.
    """
    from sidecar.pipeline.ingest.stored_logs import log_files  # noqa: PLC0415 - of the extra

    log_files(path, Zones.of(zones), broker_pattern)


def check_volumes(path: str) -> None:
    """Refuses a volume history that is not there.

    Raises:
        NotThereError: it isn't.
    """
    here = tables_here(path)
    if here is None or _WILDCARDS.search(str(here.parent)) or "{" in path:
        return
    found = here.parent.glob(here.name) if _WILDCARDS.search(here.name) else (here,)
    if not any(_has_file(one) for one in found):
        raise NotThereError(f"{path}: there is no volume history; name its folder")


def tables_here(path: str) -> Path | None:
    """Where it is on this machine's disk; None when only Spark knows."""
    if path.startswith("file:"):
        return Path(urlsplit(path).path)
    if "://" in path or any(name in os.environ for name in _OF_HADOOP):
        return None
    return Path(path)


def _check_folder(out: str, refuse: Callable[[str, list[str]], None]) -> None:
    folder = tables_here(out)
    if folder is not None:
        _check_writable(out, folder)
        refuse_locked(out, folder)
        refuse(out, _names(folder))


def _check_writable(out: str, folder: Path) -> None:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
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


def _names(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir()] if folder.is_dir() else []


def _days(table: Path) -> list[date]:
    return sorted(
        date.fromisoformat(name.removeprefix(_DAY))
        for name in _names(table)
        if re.fullmatch(_DAY + r"\d{4}-\d\d-\d\d", name)
    )


def _need(folder: Path, table: Table, command: str) -> None:
    if not _names(folder / table.name):
        raise NotThereError(
            f"there is no table {table.name} in {folder}: make it with `throttle-sidecar {command}`"
        )


def _has_file(path: Path) -> bool:
    # Hadoop leaves these out too.
    return path.is_file() or any(
        one.is_file() and not one.name.startswith((".", "_")) for one in path.rglob("*")
    )
