"""``throttle-sidecar pipeline sample``: generated request logs of any size.

Example: ``throttle-sidecar pipeline sample --out sample --size 100MB`` writes 2 h of logs of 3
brokers, a week of volume history, and snapshots of quotas and capacity.
"""

import shlex
from datetime import datetime, timedelta
from pathlib import Path

import click

from sidecar.errors import SettingsError
from usage_pipeline.cli.job_options import UTC_TIME
from usage_pipeline.cli.options import Size, shown
from usage_pipeline.cli.summary import counted


@click.command(
    "sample",
    epilog="""\b
Examples:
  throttle-sidecar pipeline sample --out sample
  throttle-sidecar pipeline sample --out sample --size 2.5GB --seed 7 --brokers 4 --hours 24
""",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Empty or new folder.",
)
@shown("--size", Size(), "100MB", "Total size of the request logs.")
@shown("--seed", int, 1, "Seed; the same seed generates the same bytes.")
@shown("--brokers", click.IntRange(1, 1000), 3, "Number of brokers.")
@shown("--hours", click.FloatRange(0, min_open=True), 2.0, "Hours of request logs.")
@shown("--history-days", click.IntRange(1, 366), 7, "Days of volume history.")
@shown("--clients", click.IntRange(0, 1_000_000), 0, "Additional client-ids of small tenants.")
@shown("--start", UTC_TIME, "2026-01-05T08:00", "Start of the request logs (UTC).")
def command(
    *,
    out: Path,
    size: int,
    seed: int,
    brokers: int,
    hours: float,
    history_days: int,
    clients: int,
    start: datetime,
) -> None:
    """Generate logs and history of a sample cluster.

    Use them for trials and benchmarks. Tenants have daily cycles and bursts. Some have quotas, and
    are throttled by Kafka's arithmetic.
    """
    if out.is_dir() and any(out.iterdir()):
        raise SettingsError((f"{out} is not empty; name an empty or new folder",))
    from usage_pipeline.sample import Sample, write_sample  # noqa: PLC0415 - numpy is of the extra

    sample = Sample(size, seed, brokers, hours, start, history_days, clients)
    written = write_sample(out, sample)
    click.echo(
        f"{written.lines:,} lines, {written.bytes / 1e6:,.1f} MB of {counted(brokers, 'broker')}."
    )
    words = ["throttle-sidecar", "pipeline", "run"]
    words += ["--request-logs", str(written.request_logs), "--volumes", str(written.volumes)]
    words += ["--quotas", str(written.quotas), "--capacity", str(written.capacity)]
    words += ["--as-of", f"{start + timedelta(seconds=sample.seconds):%Y-%m-%dT%H:%M:%SZ}"]
    click.echo(shlex.join([*words, "--out", "tables"]))
