"""``throttle-sidecar demo-pipeline``: the pipeline over a real cluster's own logs, checked.

Tenants send known traffic under known quotas; the brokers log it; the pipeline says who used what
and who was throttled for how long, and what doubled quotas would have done; then the quotas are
really doubled and the same traffic is sent again. Exit code 0 only if all of it agrees.
"""

import asyncio
import os
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_lab.tenant_traffic import FULL, QUICK, Plan
from kafka_lab.versions import DEFAULT_VERSION
from sidecar.errors import ClusterError

if TYPE_CHECKING:
    # Not at run time: a command's help needs no Spark.
    from rich.console import Console

    from kafka_lab.pipeline.checks import Check
    from kafka_lab.pipeline.recorded_cluster import Round


@click.command(
    "demo-pipeline",
    epilog="""\b
Examples:
  throttle-sidecar demo-pipeline
  throttle-sidecar demo-pipeline --quick
  throttle-sidecar demo-pipeline --kafka-version 3.9.1 --out trial
""",
)
@click.option(
    "--kafka-version", default=DEFAULT_VERSION, show_default=True, help="The brokers' version."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("pipeline-demo"),
    show_default=True,
    help="A folder that is not there yet: for the logs, the tables and report.html.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="8 s of traffic in each round instead of 48, with one burst of each tenant.",
)
def command(*, kafka_version: str, out: Path, quick: bool) -> None:
    """Check the pipeline against a real cluster: usage, throttle times, doubled quotas.

    Two minutes of known traffic on three brokers with the request log on, and two for the rest.
    Needs a JDK (17 or 21), and Maven for the first download of Kafka's jars.
    """
    if find_spec("usage_pipeline") is None:
        raise click.ClickException(
            "this demo needs the pipeline: in a checkout, pip install ./usage_pipeline"
        )
    if out.exists():
        raise click.ClickException(f"{out} is there already: remove it, or give another --out")
    # Lines have no time zone: whatever the machine's is, the brokers write UTC.
    os.environ["TZ"] = "UTC"
    from rich.console import Console  # noqa: PLC0415 - slow to import

    console = Console()
    rounds = asyncio.run(_record(kafka_version, QUICK if quick else FULL, out, console))
    checks = _replayed(rounds, out, console)
    _print(checks, console)
    console.print(f"Report: {out / 'report.html'}")
    if not all(check.holds for check in checks):
        raise SystemExit(1)


async def _record(kafka_version: str, plan: Plan, out: Path, console: "Console") -> "list[Round]":
    from kafka_lab.pipeline.recorded_cluster import cluster_of, record  # noqa: PLC0415 - as above

    def tell(what: str) -> None:
        console.print(f"{datetime.now(UTC):%H:%M:%S} {what}")

    try:
        tell(f"Kafka {kafka_version}: three brokers start (the first time: downloaded)")
        async with cluster_of(os.environ, kafka_version) as cluster:
            return await record(cluster, plan, out, tell)
    except ClusterError as error:
        raise click.ClickException(str(error)) from error


def _replayed(rounds: "list[Round]", out: Path, console: "Console") -> "list[Check]":
    from kafka_lab.pipeline.compared_tables import compared  # noqa: PLC0415 - the extra, and slow

    console.print(f"{datetime.now(UTC):%H:%M:%S} the pipeline reads what the brokers logged")
    from usage_pipeline.cli.spark_log import spark_log  # noqa: PLC0415 - as above

    with spark_log() as log:
        return compared(rounds, out, log)


def _print(checks: "list[Check]", console: "Console") -> None:
    from rich.table import Table  # noqa: PLC0415 - slow to import

    table = Table("checked", "by clients and brokers", "by the pipeline", "agree")
    for check in checks:
        agree = "yes" if check.holds else "[bold red]NO"
        table.add_row(check.title, check.expected, check.seen, agree)
    console.print(table)
