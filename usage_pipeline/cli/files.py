"""``throttle-sidecar pipeline files``: the files of tables, for any engine."""

import click

from sidecar.errors import SidecarError
from usage_pipeline.cli.job_options import OUT


class NoTableError(SidecarError):
    """A named table does not exist."""


@click.command(
    "files",
    epilog="""\b
Examples:
  throttle-sidecar pipeline files gold_usage_1s --out tables
  throttle-sidecar pipeline files silver_request gold_replay --out s3://bucket/tables > files.txt
""",
)
@click.argument("names", metavar="TABLE...", nargs=-1, required=True)
@OUT
def command(names: tuple[str, ...], out: str) -> None:
    """Print the Parquet files of tables, one per line.

    The files belong to the versions in the manifest, so all named tables come from the same run,
    also while another run commits. Only folder names contain the partition columns
    ("dt=2026-11-20"). The command needs no Spark.
    """
    from usage_pipeline.tables.commits import pinned  # noqa: PLC0415 - of the extra
    from usage_pipeline.tables.folder import Folder  # noqa: PLC0415 - of the extra
    from usage_pipeline.tables.schemas import TABLES  # noqa: PLC0415 - of the extra

    tables = pinned(Folder.parse(out))
    known = {table.name: table for table in TABLES if table.name in tables.versions}
    for name in names:
        if name not in known:
            raise NoTableError(
                f"{tables.folder} has no table {name}; it has"
                f" {', '.join(sorted(tables.versions)) or 'no tables'}"
            )
    for name in names:
        for file in tables.files(known[name]):
            click.echo(tables.folder.uri(f"{name}/{file.path}"))
