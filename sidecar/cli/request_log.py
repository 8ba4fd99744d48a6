"""``throttle-sidecar request-log``: turn the brokers' request log on for a while, off, or show it.

Usage, replays and the owners of producer ids come from the request log. It costs disk and CPU for
each request. The command therefore turns it on for a stated time and runs until then.

Example: ``throttle-sidecar request-log on --for 10m`` ends after ten minutes and restores the
previous level of every broker. Ctrl-C ends it early and does the same.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from sidecar.cli.kafka_options import kafka_options
from sidecar.cli.options import duration
from sidecar.formats.gathered_options import read_by
from sidecar.formats.log4j_pattern import checked_pattern


def _nodes_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``broker_ids``, ``bootstrap_controller`` and ``kafka``."""
    broker = click.option(
        "--broker",
        "broker_ids",
        type=click.IntRange(0, 2**31 - 1),
        multiple=True,
        metavar="ID",
        help="A broker's id; may be repeated. Without it, all brokers.",
    )
    controller = click.option(
        "--bootstrap-controller",
        metavar="HOST:PORT[,...]",
        help="Use the controllers instead, on their own listener (Kafka 3.7 and newer). Where they"
        " are not brokers too, only their log shows who changed topics.",
    )
    return broker(controller(kafka_options(function)))


_layout = click.option(
    "--layout",
    metavar="PATTERN",
    callback=read_by(checked_pattern, click.BadParameter, ValueError),
    help="The pattern of the log's layout in log4j, if the log can't be read without it.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


@click.group(
    "request-log",
    epilog="""\b
Examples:
  throttle-sidecar request-log on --for 10m --bootstrap-server b1:9092
  throttle-sidecar request-log on --for 1h --broker 2 --config sidecar.toml
  throttle-sidecar request-log status --bootstrap-server b1:9092 --json
  throttle-sidecar request-log off --bootstrap-server b1:9092
""",
)
def command() -> None:
    """Turn the brokers' request log on for a while, off, or show it.

    It is Kafka's logger kafka.request.logger. At DEBUG it writes a line for each request that the
    broker has answered. Usage, replays and the owners of producer ids come from these lines.
    """


@command.command(
    "on",
    epilog="""\b
Examples:
  throttle-sidecar request-log on --for 10m --bootstrap-server b1:9092
  throttle-sidecar request-log on --for 1h --broker 2 --config sidecar.toml
  throttle-sidecar request-log on --for 1h --file /var/log/kafka/kafka-request.log
""",
)
@click.option(
    "--for",
    "for_s",
    callback=duration(
        'the duration must be longer than 0 s; to turn the log off, run "request-log off"'
    ),
    required=True,
    metavar="DURATION",
    help="For how long, such as 10m or 1h: the command stays and turns it off at the end.",
)
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The request log of one of the brokers, if it is on this machine. Default: the daemon's"
    " request_log_file, if it is there and the brokers are those of the daemon's settings.",
)
@_layout
@_nodes_options
@click.pass_context
def turn_on(context: click.Context, /, for_s: float, **nodes: Any) -> None:  # noqa: ANN401 - the options of _nodes_options
    """Turn the request log on, wait, and restore the previous level at the end.

    Ctrl-C, SIGTERM and SIGHUP end the command early and also restore the level. Kafka does not
    store levels, so only this command knows when to turn the log off. If it is killed with SIGKILL,
    the log stays on until the broker restarts or you run "request-log off"; "request-log status"
    shows it.

    Its cost: 1,000 requests with one partition each add 1 MB to the file and take 0.01 to 0.02 s
    of the broker's CPU time. Each further partition in these requests adds 0.1 to 0.3 MB. The file
    must not be on a data volume; this command prints how to find it.

    If the file is known, the command waits for up to 15 s until it has the line of a request of
    this command. If no such line comes, the command says what the file got instead, restores the
    levels, and ends.

    If a broker's request log was already on, it stays on at the end. The exit code is 0 if the log
    was on, and is off again, on every broker where this command turned it on, and the file, if
    known, had the line; otherwise it is 1.
    """
    from sidecar.cli import request_log_commands  # noqa: PLC0415 - so that the help is quick

    target = request_log_commands.Target(**nodes)
    context.exit(asyncio.run(request_log_commands.on(target, for_s)))


@command.command("off")
@click.option(
    "--level",
    type=click.Choice(["OFF", "FATAL", "ERROR", "WARN", "INFO"], case_sensitive=False),
    default="WARN",
    show_default=True,
    help="The level to set; WARN is what Kafka's own configuration has.",
)
@_nodes_options
@_as_json
@click.pass_context
def turn_off(context: click.Context, /, level: str, as_json: bool, **nodes: Any) -> None:  # noqa: ANN401 - the options of _nodes_options
    """Turn the request log off wherever it is on.

    A broker whose request log is off is not changed. The exit code is 0 if the log is now off on
    every broker; otherwise it is 1.
    """
    from sidecar.cli import request_log_commands  # noqa: PLC0415 - so that the help is quick

    target = request_log_commands.Target(**nodes)
    context.exit(asyncio.run(request_log_commands.off(target, level.upper(), json=as_json)))


@command.command("status")
@_nodes_options
@_as_json
@click.pass_context
def show_status(context: click.Context, /, as_json: bool, **nodes: Any) -> None:  # noqa: ANN401 - the options of _nodes_options
    """Show on which brokers the request log is on.

    Brokers do not know who turned it on, or until when. The exit code is 0 if every broker
    answered; otherwise it is 1.
    """
    from sidecar.cli import request_log_commands  # noqa: PLC0415 - so that the help is quick

    target = request_log_commands.Target(**nodes)
    context.exit(asyncio.run(request_log_commands.status(target, json=as_json)))


@command.command(
    "check",
    epilog="""\b
Examples:
  throttle-sidecar request-log check /var/log/kafka/kafka-request.log
  kubectl logs my-cluster-kafka-0 | throttle-sidecar request-log check -
  throttle-sidecar request-log check --layout '%d{UNIX_MILLIS} %p %m (%c)%n' request.log
""",
)
@click.argument("file")
@_layout
@click.pass_context
def check_file(context: click.Context, /, file: str, layout: str | None) -> None:
    """Show which lines of a request log can be read, and why the others can't.

    FILE is a request log, also compressed with gzip, or - for standard input. Nothing is sent
    anywhere, and no name of a client is shown. The exit code is 0 if the file has requests and at
    least 95 % of them are read; otherwise it is 1.
    """
    from sidecar.cli.request_log_check import check  # noqa: PLC0415 - so that the help is quick

    context.exit(check(file, layout))
