"""``throttle-sidecar pipeline usage``: who used how much, second by second.

Example: ``throttle-sidecar pipeline usage --out tables --since 2026-11-20``.
"""

import click

from sidecar.cli.pipeline.job_options import JobOptions, job_options
from sidecar.cli.pipeline.running import run_job


@click.command(
    "usage",
    epilog="""\b
Examples:
  throttle-sidecar pipeline usage --out tables
  throttle-sidecar pipeline usage --out tables --since 2026-11-20 --until 2026-11-21
""",
)
@job_options
def command(job: JobOptions) -> None:
    """Who used how much of each broker, second by second, from the requests in the tables."""
    run_job(job, ["usage"])
