"""``throttle-sidecar pipeline report``: one HTML page of the tables."""

from datetime import UTC, datetime
from pathlib import Path

import click

from sidecar.cli.pipeline.job_options import NEW_FILE


@click.command(
    "report",
    epilog="""\b
Examples:
  throttle-sidecar pipeline report --out tables
  throttle-sidecar pipeline report --out tables --html /srv/www/quotas.html
""",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of the tables, on this machine.",
)
@click.option(
    "--html",
    type=NEW_FILE,
    help="The page; by default report.html in the folder of the tables.",
)
def command(out: Path, html: Path | None) -> None:
    """Write one page that loads nothing: plots, and tables to sort.

    Needs no Spark, but the tables' files on this machine.
    """
    from sidecar.cli.pipeline.running import need_extra, write_file  # noqa: PLC0415 - as its own imports

    need_extra()
    from sidecar.pipeline.report import report  # noqa: PLC0415 - of the extra
    from sidecar.pipeline.report.reading import read_tables  # noqa: PLC0415 - of the extra

    page = report(read_tables(str(out)), datetime.now(UTC))
    path = html or out / "report.html"
    write_file(path, page)
    click.echo(f"{path}: {len(page.encode()) / 1e3:,.0f} kB")
