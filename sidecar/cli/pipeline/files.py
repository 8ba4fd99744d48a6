"""``throttle-sidecar pipeline files``: where the files of a table are, for any engine."""

import click

from sidecar.errors import SidecarError


class NoTableError(SidecarError):
    """There is no such table."""


@click.command(
    "files",
    epilog="""\b
Examples:
  throttle-sidecar pipeline files gold_usage_1s --out tables
  throttle-sidecar pipeline files silver_request --out s3://bucket/tables > files.txt
""",
)
@click.argument("table")
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    help="The folder of the tables; s3:// and gs:// too.",
)
def command(table: str, out: str) -> None:
    """Print the Parquet files of a table, one a line, as the last run has left it.

    They are those of the version that the manifest pins, so that tables that are read by it belong
    together, also while a run commits. Their folders say what the table is partitioned by
    ("dt=2026-11-20"), and the files don't. Needs no Spark.
    """
    from sidecar.cli.pipeline.running import need_extra  # noqa: PLC0415 - as its own imports

    need_extra()
    from sidecar.pipeline.tables.commits import newest  # noqa: PLC0415 - of the extra
    from sidecar.pipeline.tables.folder import Folder  # noqa: PLC0415 - of the extra
    from sidecar.pipeline.tables.schemas import TABLES  # noqa: PLC0415 - of the extra

    tables = newest(Folder.of(out))
    found = [one for one in TABLES if one.name == table and table in tables.versions]
    if not found:
        raise NoTableError(
            f"there is no table {table} in {tables.folder}: there are"
            f" {', '.join(sorted(tables.versions)) or 'none'}"
        )
    for file in tables.files(found[0]):
        click.echo(tables.folder.uri(f"{table}/{file.path}"))
