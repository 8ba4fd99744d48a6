"""``throttle-sidecar pipeline``: from request logs and volume history to usage, replays and quotas.

Each subcommand is in a file of its own and imported when it is called, as the commands are. All but
``report``, ``files`` and ``sample`` need Spark, so Java; all but ``sample`` the optional extra.

Example: ``throttle-sidecar pipeline usage`` imports ``sidecar.cli.pipeline.usage`` and calls its
``command``.
"""

import click

from sidecar.cli import LazyGroup

SUBCOMMANDS = {
    "run": "All of it: from logs to every table, and the report.",
    "silver": "Read request logs, volume history and quotas into tables.",
    "usage": "Who used how much, second by second.",
    "replay": "What quotas would have done: those in force, and candidates.",
    "recommend": "The smallest quotas that keep throttling under a target.",
    "forecast": "When each volume will be at its limit.",
    "report": "Write one HTML page of the tables, with plots.",
    "files": "Print where the files of a table are, for any engine.",
    "stream": "The same tables from a Kafka topic, or from logs as they are rotated.",
    "sample": "Write made-up logs, history and snapshots of any size, from a seed.",
    "demo": "Check it all against a real cluster with known traffic.",
}
"""Every subcommand and its help in short."""


@click.group(
    "pipeline",
    cls=LazyGroup,
    package="sidecar.cli.pipeline",
    summaries=SUBCOMMANDS,
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
