"""The output of the ``request-log`` commands: a row for each broker, and notes about the file."""

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
"""The properties that name a broker's data folders. The first one overrides the second one."""

WHERE: Final = """\
The broker's log4j configuration names the file of kafka.request.logger; brokers
do not report it. Kafka's own configuration writes to
kafka-request.log in the broker's folder -Dkafka.logs.dir
(LOG_DIR, by default logs/ where Kafka is installed), begins a new file every
hour and deletes none. Container images often log to standard output instead.
"ls -l /proc/PID/fd | grep log" lists the logs that a broker has open.
The file must not be on a data volume, or on the same disk as one."""

UNSEEN: Final = """\
The level is set. Whether the broker writes the lines was not checked, because
this command sees no file of the log: --file FILE names it."""

COST: Final = """\
Its cost: 1,000 requests with one partition each add 1 MB to the file and take
0.01 to 0.02 s of the broker's CPU time, 40 % more than without the log. Each
further partition in these requests adds 0.1 to 0.3 MB. A broker with 10,000
such requests a second writes 36 GB an hour, which takes a tenth to a sixth of
a core."""
"""Measured on a broker of 4.3.1 by benchmarks/request_log_cost.py."""

LogDirConfigs = Mapping[int, Configs | Failure] | Failure
"""The brokers' configurations of their log dirs, by broker id."""


def log_dirs(configs: Configs) -> tuple[str, ...]:
    """Return a broker's log dirs, and the metadata log's if that is a different one.

    Args:
        configs: the values of the ``LOG_DIRS`` properties.
    """
    data = configs.get("log.dirs") or configs.get("log.dir") or ""
    metadata = configs.get("metadata.log.dir") or ""
    paths = [path.strip() for path in f"{data},{metadata}".split(",")]
    return tuple(dict.fromkeys(path for path in paths if path))


def print_turned(turned: Mapping[int, Turned], dirs: LogDirConfigs) -> None:
    """Print a table of the changes by ``on`` or ``off``."""
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

    rows = [
        [str(key), _level(each.before), _level(each.after), _data(dirs, key)]
        for key, each in turned.items()
    ]
    bad = [n for n, each in enumerate(turned.values()) if isinstance(each.after, Failure)]
    print_rows(["Broker", "Level before", "Level now", "Its data"], rows, bad)
    print_failures({key: each.after for key, each in turned.items()})


def print_enabled(turned: Mapping[int, Turned]) -> None:
    """Print a line if the log was on before ``on``, because this log does not end by itself."""
    before = [str(key) for key, each in turned.items() if is_on(each.before)]
    if before:
        brokers = f"broker {before[0]}" if len(before) == 1 else f"{len(before)} brokers"
        click.echo(f'On {brokers} the log was on before. It stays on until "request-log off".')


def print_levels(levels: Levels, dirs: LogDirConfigs) -> None:
    """Print a table of the levels that ``status`` read."""
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

    rows = [
        [str(key), _level(level), state(level), _data(dirs, key)] for key, level in levels.items()
    ]
    bad = [n for n, level in enumerate(levels.values()) if isinstance(level, Failure)]
    print_rows(["Broker", "Level", "Request log", "Its data"], rows, bad)
    print_failures(levels)


def as_json(turned: Mapping[int, Turned], dirs: LogDirConfigs) -> str:
    """Return the same as a document; "before" equals "after" on a broker that was not changed."""
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
    """Return in a word whether the request log is written."""
    if isinstance(level, Failure):
        return "unknown"
    return "on" if is_on(level) else "off"


def print_failures(levels: Mapping[int, str | Failure]) -> None:
    """Print a line on standard error for each broker that failed."""
    for level in levels.values():
        if isinstance(level, Failure):
            click.echo(printable(level.message), err=True)


def _level(level: str | Failure) -> str:
    return "unknown" if isinstance(level, Failure) else level


def _or_none(level: str | Failure) -> str | None:
    return None if isinstance(level, Failure) else level


def _paths(dirs: LogDirConfigs, broker_id: int) -> tuple[str, ...] | None:
    """Return the data folders of a broker, or None if they are not known."""
    configs = None if isinstance(dirs, Failure) else dirs.get(broker_id)
    return None if configs is None or isinstance(configs, Failure) else log_dirs(configs)


def _data(dirs: LogDirConfigs, broker_id: int) -> str:
    return ", ".join(_paths(dirs, broker_id) or ()) or "unknown"
