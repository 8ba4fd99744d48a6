"""``throttle-sidecar pipeline sample``: realistic request logs of any size, from a seed.

Example: ``throttle-sidecar pipeline sample --out sample --size 100MB`` writes the logs of 3 brokers
over 2 h, a week of volume history, and the snapshots of quotas and capacity.
"""

import shlex
from datetime import datetime
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
    help="A folder that is empty or not there yet.",
)
@shown("--size", Size(), "100MB", "Of the request logs together.")
@shown("--seed", int, 1, "The same seed, the same bytes.")
@shown("--brokers", click.IntRange(1, 1000), 3, "Whose logs are written.")
@shown("--hours", click.FloatRange(0, min_open=True), 2.0, "That the request logs cover.")
@shown("--history-days", click.IntRange(1, 366), 7, "That the volume history covers.")
@shown("--clients", click.IntRange(0, 1_000_000), 0, "Client-ids of small tenants besides.")
@shown("--start", UTC_TIME, "2026-01-05T08:00", "Of the request logs, UTC.")
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
    """Write request logs, volume history and snapshots of a made-up cluster.

    For trials and benchmarks. Tenants have days and bursts, some have quotas and are throttled by
    Kafka's own arithmetic.
    """
    if out.is_dir() and any(out.iterdir()):
        raise SettingsError(
            (f"{out} has files in it, with which these would be mixed: name another",)
        )
    from usage_pipeline.sample import Sample, write_sample  # noqa: PLC0415 - numpy is of the extra

    sample = Sample(size, seed, brokers, hours, start, history_days, clients)
    written = write_sample(out, sample)
    click.echo(
        f"{written.lines:,} lines, {written.bytes / 1e6:,.1f} MB of {counted(brokers, 'broker')}."
    )
    words = ["throttle-sidecar", "pipeline", "run"]
    words += ["--request-logs", str(written.request_logs), "--volumes", str(written.volumes)]
    words += ["--quotas", str(written.quotas), "--capacity", str(written.capacity)]
    click.echo(shlex.join([*words, "--out", "tables"]))
