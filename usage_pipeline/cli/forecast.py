"""``throttle-sidecar pipeline forecast``: when each volume reaches its limit."""

import click

from usage_pipeline.cli.job_options import DiskOptions, JobOptions, disk_options, job_options
from usage_pipeline.cli.running import run_job


@click.command(
    "forecast",
    epilog="""\b
Examples:
  throttle-sidecar pipeline forecast --out tables --limit-bytes 10GB
  throttle-sidecar pipeline forecast --out tables --as-of 2026-11-20 --limit-ratio 0.1
""",
)
@disk_options
@job_options
def command(job: JobOptions, disks: DiskOptions) -> None:
    """Forecast when each volume reaches its limit, with a range.

    The forecast follows the data that retention leaves. If there is too little history, the table
    contains the reason instead.
    """
    run_job(job, ["forecast"], disks=disks)
