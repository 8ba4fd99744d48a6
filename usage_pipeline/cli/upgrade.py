"""``throttle-sidecar pipeline upgrade``: tables of an earlier format, without the logs."""

from datetime import UTC, datetime

import click

from usage_pipeline.cli.job_options import OUT
from usage_pipeline.tables.schemas import FORMAT


@click.command(
    "upgrade",
    epilog="""\b
Examples:
  throttle-sidecar pipeline upgrade --out tables
""",
)
@OUT
def command(out: str) -> None:
    """Rewrite tables of an earlier version of this program.

    The command rewrites only tables whose layout has changed, and needs neither the logs nor Spark.
    Afterwards, earlier versions of this program refuse the tables.
    """
    from usage_pipeline.batch.upgrade import upgrade  # noqa: PLC0415 - of the extra

    for name, count in upgrade(out, datetime.now(UTC)).items():
        click.echo(f"{name}: {count:,} rows rewritten")
    click.echo(f"{out} has tables of format {FORMAT}")
