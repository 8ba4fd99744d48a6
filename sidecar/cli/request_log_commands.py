"""The work of ``request-log on``, ``off`` and ``status``, after their options are read.

Example: ``await on(target, 600.0)`` prints a row for each broker, waits for ten minutes or for a
signal, restores the previous level of every broker, and returns the exit code.
"""

import asyncio
import dataclasses
import os
import secrets
import signal
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from sidecar import logs
from sidecar.cli.kafka_options import KafkaOptions, load_kafka_admin
from sidecar.cli.request_log_line import OwnLine
from sidecar.cli.request_log_report import (
    COST,
    LOG_DIRS,
    UNSEEN,
    WHERE,
    LogDirConfigs,
    as_json,
    print_enabled,
    print_failures,
    print_levels,
    print_turned,
)
from sidecar.cli.request_log_session import Session, Turned, is_on
from sidecar.formats.quantities import format_duration
from sidecar.kafka.broker_configs import describe_broker_configs
from sidecar.kafka.broker_loggers import REQUEST_LOGGER, Levels, read_levels, set_levels
from sidecar.kafka.client.each_broker import Nodes
from sidecar.settings import KafkaAdmin, read_daemon_values
from sidecar.volumes import Failure

_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""SIGHUP is one of them, because a closed terminal must not leave the request log on."""


@dataclass(frozen=True, slots=True)
class Target:
    """The brokers or controllers that the command line names.

    Attributes:
        kafka: how to reach the brokers.
        broker_ids: the brokers; empty means all of them.
        bootstrap_controller: the controllers' addresses, to use controllers instead of brokers.
        file: the request log of one of them; None if the command line has none.
        layout: the pattern of that log's layout; None if the command line has none.
    """

    kafka: KafkaOptions
    broker_ids: tuple[int, ...] = ()
    bootstrap_controller: str | None = None
    file: Path | None = None
    layout: str | None = None

    def request_log(self) -> tuple[Path | None, str | None]:
        """Return the request log of one of the brokers and its pattern, if this command sees it."""
        kafka = self.kafka
        others = (kafka.bootstrap_server, kafka.command_config, self.bootstrap_controller)
        if self.file is not None or others != (None, None, None):
            return self.file, self.layout
        daemon = read_daemon_values(os.environ, kafka.config, kafka.properties)
        file = daemon.request_log_file
        # The settings may be those of another machine.
        is_seen = file is not None and file.exists()
        if not is_seen or (self.broker_ids and daemon.broker_id not in self.broker_ids):
            return None, None
        return file, self.layout or daemon.request_log_layout


class _Nodes:
    """Return the client of the brokers or controllers."""

    def __init__(self, target: Target) -> None:
        # The commands themselves report a failure, once.
        logs.set_up("text", "error")
        kafka = target.kafka
        self._kind: Nodes = "brokers"
        if target.bootstrap_controller is not None:
            if kafka.bootstrap_server is not None:
                raise click.UsageError("give either --bootstrap-server or --bootstrap-controller")
            kafka = dataclasses.replace(kafka, bootstrap_server=target.bootstrap_controller)
            self._kind = "controllers"
        self._admin: KafkaAdmin = load_kafka_admin(kafka)
        self._ids = frozenset(target.broker_ids) or None

    async def read(self) -> Levels | Failure:
        """Read the levels of the request loggers."""
        return await read_levels(self._admin, self._ids, REQUEST_LOGGER, nodes=self._kind)

    async def write(self, levels: Mapping[int, str]) -> Levels | Failure:
        """Set the levels of some brokers."""
        return await set_levels(self._admin, levels, REQUEST_LOGGER, nodes=self._kind)

    async def send_as(self, client_id: str, broker_ids: Collection[int]) -> None:
        """Send brokers a request with this client-id; an answer is not needed."""
        admin = self._admin.model_copy(update={"client_id": client_id})
        await read_levels(admin, broker_ids, REQUEST_LOGGER, nodes=self._kind)

    async def log_dirs(self) -> LogDirConfigs:
        """Read the folders of the brokers' data."""
        return await describe_broker_configs(self._admin, self._ids, LOG_DIRS, nodes=self._kind)


async def on(target: Target, for_s: float) -> int:
    """Turn the log on for ``for_s`` seconds, then restore the levels; return the exit code."""
    nodes, log = _Nodes(target), target.request_log()
    ended = asyncio.Event()
    for number in _ENDS:
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    session = Session(nodes.read, nodes.write, _report)
    turned = await session.on()
    if isinstance(turned, Failure):
        return _report_failure(turned)
    still_enabled: Mapping[int, Failure] = {}
    is_written = False
    try:
        print_turned(turned, await nodes.log_dirs())
        print_enabled(turned)
        is_written = await _is_written(log, nodes, turned, ended)
        if not is_written:
            click.echo("The log is of no use, so this command ends.")
        elif session.has_changes:
            ends = time.strftime("%H:%M:%S", time.localtime(time.time() + for_s))
            click.echo(f"\n{WHERE}\n\n{COST}\n")
            click.echo(
                f"It is on until {ends} ({format_duration(for_s)}); Ctrl-C turns it off earlier."
            )
            await session.wait(for_s, ended)
        else:
            click.echo("The request log was turned on nowhere, so no level has to be restored.")
    finally:
        still_enabled = await session.back()
    print_failures(still_enabled)
    for broker_id in still_enabled:
        _report(f'Broker {broker_id} may still write its request log: run "request-log off".')
    all_on = all(each.is_on for each in turned.values())
    if all_on and not still_enabled:
        click.echo("Every broker has its previous level again.")
    return 0 if all_on and is_written and not still_enabled else 1


async def _is_written(
    log: tuple[Path | None, str | None],
    nodes: _Nodes,
    turned: Mapping[int, Turned],
    ended: asyncio.Event,
) -> bool:
    """Report whether the line of a request of this command is in the log; return False if not.

    Args:
        log: as ``Target.request_log``.
        nodes: the brokers.
        turned: their levels.
        ended: an event that ends the wait.
    """
    file, pattern = log
    enabled = [broker_id for broker_id, each in turned.items() if each.is_on]
    if not enabled:
        return True
    if file is None:
        click.echo(UNSEEN)
        return True
    client_id = f"throttle-sidecar-request-log-{secrets.token_hex(4)}"
    seen = await OwnLine(file, client_id, pattern).wait(
        lambda: nodes.send_as(client_id, enabled), ended
    )
    if seen.is_there:
        click.echo(logs.printable(f"The request log is on: {seen.text}."))
    elif not ended.is_set():
        _report(f"The level is set, but no line of this command's requests was seen: {seen.text}.")
        return False
    return True


async def off(target: Target, level: str, *, json: bool) -> int:
    """Set a level at which nothing is written, wherever the log is on; return the exit code."""
    nodes = _Nodes(target)
    before = await nodes.read()
    if isinstance(before, Failure):
        return _report_failure(before)
    levels = {key: level for key, each in before.items() if is_on(each)}
    written = await nodes.write(levels) if levels else {}
    after = dict.fromkeys(levels, written) if isinstance(written, Failure) else written
    turned = {key: Turned(each, after.get(key, each)) for key, each in before.items()}
    dirs = await nodes.log_dirs()
    if json:
        click.echo(as_json(turned, dirs))
        print_failures({key: each.after for key, each in turned.items()})
    else:
        print_turned(turned, dirs)
    return 0 if not any(isinstance(each.after, Failure) for each in turned.values()) else 1


async def status(target: Target, *, json: bool) -> int:
    """Show on which brokers the log is on; return the exit code."""
    nodes = _Nodes(target)
    levels = await nodes.read()
    if isinstance(levels, Failure):
        return _report_failure(levels)
    dirs = await nodes.log_dirs()
    if json:
        click.echo(as_json({key: Turned(each, each) for key, each in levels.items()}, dirs))
        print_failures(levels)
    else:
        print_levels(levels, dirs)
        if any(map(is_on, levels.values())):
            click.echo(f"\n{WHERE}")
    return 0 if not any(isinstance(each, Failure) for each in levels.values()) else 1


def _report_failure(failure: Failure) -> int:
    _report(failure.message)
    return 1


def _report(line: str) -> None:
    click.echo(logs.printable(line), err=True)
