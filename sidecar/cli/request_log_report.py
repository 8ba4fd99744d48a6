"""What the ``request-log`` commands print: a row for each broker, and what to know of the file."""

import json
from collections.abc import Mapping
from typing import Final

import click

from sidecar.cli.request_log_session import Turned, is_on
from sidecar.kafka.broker_configs import Configs
from sidecar.kafka.broker_loggers import Levels
from sidecar.logs import printable
from sidecar.volumes import Failure

LOG_DIRS: Final = ("log.dirs", "log.dir", "metadata.log.dir")
"""The configurations that name a broker's data: the first two are one, the first wins."""

WHERE: Final = """\
The file is where the broker's log4j configuration sends kafka.request.logger;
no broker reports it. Kafka's own configuration writes to
kafka-request.log in the broker's folder -Dkafka.logs.dir
(LOG_DIR, by default logs/ where Kafka is installed), begins a new file every
hour and deletes none. Images for containers often log to standard output
instead. "ls -l /proc/PID/fd | grep log" lists the logs that a broker has open.
The file must not lie on a data volume, nor on the disk of one."""

COST: Final = """\
What it costs: 1,000 requests of one partition each make the file 1 MB longer
and take a broker 0.01 to 0.02 s of CPU time, 40 % more than it takes without;
every further partition in them adds 0.1 to 0.3 MB. So a broker with 10,000
such requests a second writes 36 GB an hour, which takes a tenth to a sixth of
a core."""
"""Measured on a broker of 4.3.1 by benchmarks/request_log_cost.py."""

LogDirConfigs = Mapping[int, Configs | Failure] | Failure
"""The brokers' configurations of their log dirs, by broker id."""


def log_dirs(configs: Configs | Failure | None) -> tuple[str, ...]:
    """A broker's data: its log dirs, and the metadata log's if that has one of its own.

    Args:
        configs: the configurations of ``LOG_DIRS``; a failure and None have none.
    """
    if configs is None or isinstance(configs, Failure):
        return ()
    data = configs.get("log.dirs") or configs.get("log.dir") or ""
    metadata = configs.get("metadata.log.dir") or ""
    paths = [path.strip() for path in f"{data},{metadata}".split(",")]
    return tuple(dict.fromkeys(path for path in paths if path))


def print_turned(turned: Mapping[int, Turned], dirs: LogDirConfigs) -> None:
    """A table of what ``on`` or ``off`` did."""
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

    rows = [
        [str(key), _level(each.before), _level(each.after), _data(dirs, key)]
        for key, each in turned.items()
    ]
    bad = [n for n, each in enumerate(turned.values()) if isinstance(each.after, Failure)]
    print_rows(["Broker", "Level before", "Level now", "Its data"], rows, bad)
    print_failures({key: each.after for key, each in turned.items()})


def print_enabled(turned: Mapping[int, Turned]) -> None:
    """A line when ``on`` found the log on: nothing else shows that it does not end."""
    before = [str(key) for key, each in turned.items() if is_on(each.before)]
    if before:
        brokers = f"broker {before[0]}" if len(before) == 1 else f"{len(before)} brokers"
        click.echo(f'On {brokers} it was on before, and stays on: "request-log off" ends it.')


def print_levels(levels: Levels, dirs: LogDirConfigs) -> None:
    """A table of what ``status`` found."""
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

    rows = [
        [str(key), _level(level), state(level), _data(dirs, key)] for key, level in levels.items()
    ]
    bad = [n for n, level in enumerate(levels.values()) if isinstance(level, Failure)]
    print_rows(["Broker", "Level", "Request log", "Its data"], rows, bad)
    print_failures(levels)


def as_json(turned: Mapping[int, Turned], dirs: LogDirConfigs) -> str:
    """The same as a document; before and after are the same level where nothing was done."""
    brokers = [
        {
            "broker_id": key,
            "level_before": _or_none(each.before),
            "level": _or_none(each.after),
            "request_log": state(each.after),
            "log_dirs": None if (paths := _paths(dirs, key)) is None else list(paths),
            "failure": each.after.message if isinstance(each.after, Failure) else None,
        }
        for key, each in turned.items()
    ]
    return json.dumps({"brokers": brokers}, indent=2)


def state(level: str | Failure) -> str:
    """Whether the request log is written, in a word."""
    if isinstance(level, Failure):
        return "unknown"
    return "on" if is_on(level) else "off"


def print_failures(levels: Mapping[int, str | Failure]) -> None:
    """A line on standard error for each broker that failed."""
    for level in levels.values():
        if isinstance(level, Failure):
            click.echo(printable(level.message), err=True)


def _level(level: str | Failure) -> str:
    return "unknown" if isinstance(level, Failure) else level


def _or_none(level: str | Failure) -> str | None:
    return None if isinstance(level, Failure) else level


def _paths(dirs: LogDirConfigs, broker_id: int) -> tuple[str, ...] | None:
    """The data of a broker; None when that is not known."""
    configs = None if isinstance(dirs, Failure) else dirs.get(broker_id)
    return None if configs is None or isinstance(configs, Failure) else log_dirs(configs)


def _data(dirs: LogDirConfigs, broker_id: int) -> str:
    return ", ".join(_paths(dirs, broker_id) or ()) or "unknown"
