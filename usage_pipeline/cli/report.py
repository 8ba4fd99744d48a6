"""``throttle-sidecar pipeline report``: an HTML page of the tables."""

from pathlib import Path

import click

from sidecar.errors import SettingsError
from usage_pipeline.cli.job_options import CLUSTER_ID, NEW_FILE, OUT


@click.command(
    "report",
    epilog="""\b
Examples:
  throttle-sidecar pipeline report --out tables
  throttle-sidecar pipeline report --out s3://bucket/tables --html quotas.html
""",
)
@OUT
@click.option(
    "--html",
    type=NEW_FILE,
    help="File of the page. Default: report.html in the folder of the tables.",
)
@CLUSTER_ID
def command(out: str, html: Path | None, cluster_id: str | None) -> None:
    """Write a self-contained page with plots and tables.

    Several clusters have a page each, and report.html links to them. The command needs no Spark.
    """
    from usage_pipeline.cli.running import write_report  # noqa: PLC0415 - as its own imports

    page = write_report(out, html, cluster_id)
    if page is None:
        raise SettingsError((f"{out} is in object storage; name a local page with --html",))
    click.echo(f"{page}: {page.stat().st_size / 1e3:,.0f} kB")
