"""``throttle-sidecar demo-pipeline``: checks the pipeline against a real cluster's own logs.

Tenants send known traffic under known quotas, and the brokers log it. From the logs, the pipeline
computes each tenant's usage and throttle times, and the effect of doubled quotas. Then the quotas
are really doubled, and the same traffic is sent again. Three more tenants have no quota. The
recommended ones are set, and they send the same traffic again, and one of them five times as much.
The exit code is 0 only if everything agrees.
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
    # Not imported at run time, because a command's help works without Spark.
    from rich.console import Console

    from kafka_lab.pipeline.checks import Check


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
    "--kafka-version",
    default=DEFAULT_VERSION,
    show_default=True,
    help="The version of the brokers.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("pipeline-demo"),
    show_default=True,
    help="A new folder for the logs, the tables and report.html.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Send 8 s of traffic in each round instead of 48 s, with one burst of each tenant.",
)
def command(*, kafka_version: str, out: Path, quick: bool) -> None:
    """Check the pipeline against a real cluster: usage, throttle times, recommended quotas.

    It takes six minutes: four for known traffic on three brokers with the request log enabled, and
    two for the rest. It needs a JDK (17 or 21), and Maven for the first download of Kafka's
    jars.
    """
    if find_spec("usage_pipeline") is None:
        raise click.ClickException(
            "this demo needs the pipeline: install it in a checkout with"
            " pip install . ./usage_pipeline"
        )
    if out.exists():
        raise click.ClickException(f"{out} exists already: remove it, or name another --out")
    # Lines have no time zone, so the brokers write UTC, independent of the machine's time zone.
    os.environ["TZ"] = "UTC"
    from rich.console import Console  # noqa: PLC0415 - slow to import

    console = Console()
    checks = asyncio.run(_checked(kafka_version, QUICK if quick else FULL, out, console))
    _print(checks, console)
    console.print(f"Report: {out / 'report.html'}")
    if not all(check.holds for check in checks):
        raise SystemExit(1)


async def _checked(kafka_version: str, plan: Plan, out: Path, console: "Console") -> "list[Check]":
    from kafka_lab.pipeline.advised import follow  # noqa: PLC0415 - the extra, and slow
    from kafka_lab.pipeline.compared_tables import compared  # noqa: PLC0415 - as above
    from kafka_lab.pipeline.recorded_cluster import cluster_of, record  # noqa: PLC0415 - as above
    from usage_pipeline.cli.spark_log import spark_log  # noqa: PLC0415 - as above

    def tell(event: str) -> None:
        console.print(f"{datetime.now(UTC):%H:%M:%S} {event}")

    try:
        tell(f"starting three brokers of Kafka {kafka_version} (the first time: downloading)")
        async with cluster_of(os.environ, kafka_version) as cluster:
            rounds = await record(cluster, plan, out, tell)
            tell("the pipeline reads the brokers' logs")
            with spark_log() as log:
                checks, advice = await asyncio.to_thread(compared, rounds, out, log)
            return checks + await follow(cluster, plan, rounds[-1], advice, tell)
    except ClusterError as error:
        raise click.ClickException(str(error)) from error


def _print(checks: "list[Check]", console: "Console") -> None:
    from rich.table import Table  # noqa: PLC0415 - slow to import

    table = Table("checked", "clients and brokers", "pipeline", "agree")
    for check in checks:
        agree = "yes" if check.holds else "[bold red]NO"
        table.add_row(check.title, check.expected, check.seen, agree)
    console.print(table)
