"""``throttle-sidecar pipeline``: usage, quotas and forecasts from logs and volume history.

Each command has its own file. All commands except ``report``, ``files``, ``upgrade`` and ``sample``
start Spark, which needs Java. The commands import Spark only when they run, so that ``--help`` is
fast.
"""

import sys
from typing import Final

import click

from sidecar.errors import SidecarError
from usage_pipeline.cli import (
    costs,
    files,
    forecast,
    recommend,
    replay,
    report,
    run,
    sample,
    silver,
    stream,
    upgrade,
    usage,
)

_COMMANDS: Final = (
    *(run, silver, usage, replay, recommend, forecast),
    *(costs, report, files, upgrade, stream, sample),
)
"""The commands, in the order of the help."""


class _InOrder(click.Group):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the base class's signature
        return list(self.commands)


@click.group(
    "pipeline",
    cls=_InOrder,
    short_help="Analyze request logs and volume history with Spark.",
    epilog="""\b
Examples:
  throttle-sidecar pipeline sample --out sample --size 100MB
  throttle-sidecar pipeline run --request-logs sample/request-logs --volumes sample/volumes \\
      --quotas sample/quotas.json --as-of 2026-01-05T10:00 --out tables
  throttle-sidecar pipeline report --out tables
  throttle-sidecar pipeline usage --out tables --since 2026-11-20 --master spark://host:7077
""",
)
def command() -> None:
    """Report usage, replay and recommend quotas, and forecast full disks.

    The pipeline reads the brokers' request logs and the sidecars' volume history with Spark, on
    this machine or on a cluster (--master). It writes Delta tables, which any engine can read.
    """


for each in _COMMANDS:
    command.add_command(each.command)


def main() -> None:
    """Run ``throttle-sidecar pipeline`` without the sidecar's other commands."""
    program = click.Group("throttle-sidecar", commands=[command])
    try:
        program.main(prog_name="throttle-sidecar")
    except SidecarError as error:
        click.echo(error, err=True)
        sys.exit(2)
