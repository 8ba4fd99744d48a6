"""``throttle-sidecar pipeline files``: where the files of tables are, for any engine."""

import click

from sidecar.errors import SidecarError


class NoTableError(SidecarError):
    """There is no such table."""


@click.command(
    "files",
    epilog="""\b
Examples:
  throttle-sidecar pipeline files gold_usage_1s --out tables
  throttle-sidecar pipeline files silver_request gold_replay --out s3://bucket/tables > files.txt
""",
)
@click.argument("names", metavar="TABLE...", nargs=-1, required=True)
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    help="The folder of the tables; s3:// and gs:// too.",
)
def command(names: tuple[str, ...], out: str) -> None:
    """Print the Parquet files of tables, one a line, as the last run has left them.

    They are those of the versions that the manifest pins: tables that are named together are of one
    run, also while another one commits. Their folders say what the table is partitioned by
    ("dt=2026-11-20"), and the files don't. Needs no Spark.
    """
    from usage_pipeline.tables.commits import newest  # noqa: PLC0415 - of the extra
    from usage_pipeline.tables.folder import Folder  # noqa: PLC0415 - of the extra
    from usage_pipeline.tables.schemas import TABLES  # noqa: PLC0415 - of the extra

    tables = newest(Folder.of(out))
    known = {table.name: table for table in TABLES if table.name in tables.versions}
    for name in names:
        if name not in known:
            raise NoTableError(
                f"there is no table {name} in {tables.folder}: there are"
                f" {', '.join(sorted(tables.versions)) or 'none'}"
            )
    for name in names:
        for file in tables.files(known[name]):
            click.echo(tables.folder.uri(f"{name}/{file.path}"))
