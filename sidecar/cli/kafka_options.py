"""The options with which a command reaches brokers.

``--bootstrap-server`` and ``--command-config`` are the options of Kafka's own tools. Without them,
the command uses the daemon's settings: the environment, and the files of ``--config`` and
``--properties``.

Example::

    @click.command("capacity")
    @kafka_options
    def command(kafka: KafkaOptions) -> None:
        admin = load_kafka_admin(kafka)
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from sidecar.cli.options import settings_options
from sidecar.errors import SettingsError
from sidecar.formats.gathered_options import gathered

if TYPE_CHECKING:
    # Not at run time: a command's help needs no settings, and pydantic takes time to import.
    from sidecar.settings import KafkaAdmin

SERVERS: Final = "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS"

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """The options as they are on the command line; no file is read yet."""

    bootstrap_server: str | None = None
    command_config: Path | None = None
    config: Path | None = None
    properties: Path | None = None


def kafka_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``kafka: KafkaOptions``."""
    bootstrap = click.option(
        "--bootstrap-server",
        metavar="HOST:PORT[,...]",
        help="The brokers to contact first, as in Kafka's tools; the daemon's settings are then not"
        " read.",
    )
    command_config = click.option(
        "--command-config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A properties file of the Java admin client's (security.protocol, sasl.jaas.config,"
        " ...), as in Kafka's tools.",
    )
    return gathered(function, "kafka", KafkaOptions, bootstrap, command_config, settings_options)


def load_kafka_admin(options: KafkaOptions) -> "KafkaAdmin":
    """Return how to reach the brokers; print on standard error which properties have no effect.

    Raises:
        UsageError: Kafka's options and the daemon's are mixed.
        SettingsError: the settings can't be used; it lists every problem.
    """
    from sidecar.settings import (  # noqa: PLC0415 - see TYPE_CHECKING above
        read_command_config,
        read_daemon_admin,
    )

    if options.bootstrap_server is None and options.command_config is None:
        try:
            return read_daemon_admin(os.environ, options.config, options.properties)
        except SettingsError as error:
            if options != KafkaOptions() or os.environ.get(SERVERS):
                raise
            hint = "or give --bootstrap-server HOST:PORT, as to Kafka's tools"
            raise SettingsError((*error.problems, hint)) from error
    if options.config is not None or options.properties is not None:
        raise click.UsageError(
            "give either --bootstrap-server and --command-config, or the daemon's settings"
            " (--config, --properties)"
        )
    admin, notices = read_command_config(
        options.bootstrap_server, options.command_config, os.environ
    )
    for notice in notices:
        click.echo(f"Note: {notice}", err=True)
    return admin
