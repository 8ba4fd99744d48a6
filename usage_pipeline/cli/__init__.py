"""``throttle-sidecar pipeline``: from request logs and volume history to usage and quotas.

Each command is in a file of its own. All but ``report``, ``files`` and ``sample`` start Spark,
which needs Java. The commands import Spark when they run, so that ``--help`` is quick.
"""

import sys
from typing import Final

import click

from sidecar.errors import SidecarError
from usage_pipeline.cli import (
    files,
    forecast,
    recommend,
    replay,
    report,
    run,
    sample,
    silver,
    stream,
    usage,
)

_COMMANDS: Final = (run, silver, usage, replay, recommend, forecast, report, files, stream, sample)
"""In the order in which the help lists them."""


class _InOrder(click.Group):
    """Lists its commands as they were added, not by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the base class's signature
        return list(self.commands)


@click.group(
    "pipeline",
    cls=_InOrder,
    short_help="Request logs and volume history to usage, replays, quotas and forecasts.",
    epilog="""\b
Examples:
  throttle-sidecar pipeline sample --out sample --size 100MB
  throttle-sidecar pipeline run --request-logs sample/request-logs --volumes sample/volumes \\
      --quotas sample/quotas.json --out tables
  throttle-sidecar pipeline report --out tables
  throttle-sidecar pipeline usage --out tables --since 2026-11-20 --master spark://host:7077
""",
)
def command() -> None:
    """Who used what, what quotas would have done, what to set, and when disks will be full.

    It reads the brokers' request logs and the volume history that sidecars write, with Spark: on
    this machine, or on a cluster with --master. Tables are Delta tables, for any engine to read.
    """


for each in _COMMANDS:
    command.add_command(each.command)


def main() -> None:
    """Run ``throttle-sidecar pipeline ...`` where the sidecar's own commands are not installed."""
    program = click.Group("throttle-sidecar", commands=[command])
    try:
        program.main(prog_name="throttle-sidecar")
    except SidecarError as error:
        click.echo(error, err=True)
        sys.exit(2)
