"""``throttle-sidecar pipeline report``: one HTML page of the tables."""

from pathlib import Path

import click

from sidecar.errors import SettingsError
from usage_pipeline.cli.job_options import CLUSTER_ID, NEW_FILE


@click.command(
    "report",
    epilog="""\b
Examples:
  throttle-sidecar pipeline report --out tables
  throttle-sidecar pipeline report --out s3://bucket/tables --html quotas.html
""",
)
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    help="The folder of the tables; s3:// and gs:// too.",
)
@click.option(
    "--html",
    type=NEW_FILE,
    help="The page; by default report.html in the folder of the tables.",
)
@CLUSTER_ID
def command(out: str, html: Path | None, cluster_id: str | None) -> None:
    """Write one page that loads nothing: plots, and tables to sort.

    Of several clusters each has a page, and report.html leads to them. Needs no Spark.
    """
    from usage_pipeline.cli.running import write_report  # noqa: PLC0415 - as its own imports

    page = write_report(out, html, cluster_id)
    if page is None:
        raise SettingsError((f"{out} is in object storage: name the page with --html",))
    click.echo(f"{page}: {page.stat().st_size / 1e3:,.0f} kB")
