r"""``throttle-sidecar history``: volume histories of other programs' readings.

Operators have years of readings of their disks. As a volume history, ``replay-decisions`` and the
pipeline's forecasts read them.

Example: ``throttle-sidecar history import --df kafka-3.df --broker 3 --log-dir '{mountpoint}' --out
history`` writes a file for each hour of the log.
"""

import re
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from sidecar.formats.gathered_options import read_by


def _rules(values: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    rules = []
    for value in values:
        label, separator, pattern = value.partition("=")
        if not separator:
            raise ValueError(f"{value!r} is not LABEL=REGEX")
        try:
            rules.append((label, re.compile(pattern)))
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    return tuple(rules)


def _zone(value: str) -> tzinfo:
    # A container may have no list of zones.
    if value == "UTC":
        return UTC
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{value!r} is not a time zone that this machine knows") from error


@click.group(
    "history",
    epilog="""\b
Examples:
  throttle-sidecar history import --csv disks.csv --match 'host=kafka-(?P<broker>\\d+)' \\
      --log-dir /data --out history
""",
)
def command() -> None:
    """Make a volume history of other programs' readings of the disks.

    replay-decisions and the pipeline read it like the history that sidecars write.
    """


@command.command(
    "import",
    epilog="""\b
Examples:
  throttle-sidecar history import --prometheus kubelet.json --out history \\
      --match 'persistentvolumeclaim=(?P<dir>data-\\d+)-my-cluster-[a-z0-9-]+-(?P<broker>\\d+)' \\
      --log-dir '/var/lib/kafka/{dir}/kafka-log{broker}'
  throttle-sidecar history import --prometheus node.json --out history \\
      --match 'instance=kafka-(?P<broker>\\d+):9100' --match 'mountpoint=/data/.*' \\
      --log-dir '{mountpoint}'
  throttle-sidecar history import --df kafka-3.df --broker 3 --match mountpoint=/data \\
      --log-dir '{mountpoint}' --out history
""",
)
@click.option(
    "--prometheus",
    multiple=True,
    metavar="FILE|URL",
    help="The answer of /api/v1/query_range, or its URL. May be repeated, such as for the total"
    " and for the available bytes.",
)
@click.option(
    "--csv",
    "csv_files",
    multiple=True,
    metavar="FILE",
    help="A CSV file with a header, also Grafana's. May be repeated.",
)
@click.option(
    "--df",
    "df_files",
    multiple=True,
    metavar="FILE",
    help="A log of df: a line with the time and the output of df -k, again and again. May be"
    " repeated.",
)
@click.option(
    "--match",
    "rules",
    callback=read_by(_rules, click.BadParameter, ValueError),
    multiple=True,
    metavar="LABEL=REGEX",
    help="A label or column, and a regular expression that its whole value must match. The group"
    " (?P<broker>...) is the broker's id. May be repeated; all must match.",
)
@click.option(
    "--log-dir",
    required=True,
    metavar="PATH",
    help="The log dir. {LABEL} and {GROUP} stand for the value of a label or of a named group.",
)
@click.option(
    "--broker",
    type=click.IntRange(0, 2**31 - 1),
    metavar="ID",
    help="The broker of all readings, in place of the group.",
)
@click.option(
    "--zone",
    callback=read_by(_zone, click.BadParameter, ValueError),
    metavar="NAME",
    help="The time zone of times without an offset from UTC, such as UTC or Europe/Berlin.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file with a bearer token for the URL of --prometheus.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="The folder of the history; it is made if it does not exist.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the hours that were imported before, with all brokers in them.",
)
def import_readings(
    *,
    prometheus: tuple[str, ...],
    csv_files: tuple[str, ...],
    df_files: tuple[str, ...],
    rules: tuple[tuple[str, re.Pattern[str]], ...],
    log_dir: str,
    broker: int | None,
    zone: tzinfo | None,
    token_file: Path | None,
    out: Path,
    overwrite: bool,
) -> None:
    """Write the readings of Prometheus, Grafana, CSV files or df as a volume history.

    A reading needs the total and the available bytes of a volume at the same time. The name of a
    metric or column tells which it is: "size", "capacity" or "total", and "avail". The label "file"
    is the name of the file.

    Series that no --match fits are named on standard error. Nothing is written if a value can't be
    read.
    """
    from sidecar.cli import history_import  # noqa: PLC0415 - so that the help is quick
    from sidecar.history.imports.volume_names import BROKER, VolumeNames  # noqa: PLC0415

    if not (*prometheus, *csv_files, *df_files):
        raise click.UsageError("name what to read: --prometheus, --csv or --df")
    groups = [name for _, pattern in rules for name in pattern.groupindex if name == BROKER]
    if len(groups) != (1 if broker is None else 0):
        raise click.UsageError(
            "name the broker once: by one group (?P<broker>...) of --match, or by --broker ID"
        )
    sources = history_import.Sources(prometheus, csv_files, df_files, zone, token_file)
    names = VolumeNames(rules, log_dir, broker)
    history_import.run(sources, names, out, overwrite=overwrite)
