"""``throttle-sidecar pipeline costs``: what usage costs each owner."""

import click

from usage_pipeline.cli.job_options import CostOptions, JobOptions, cost_options, job_options
from usage_pipeline.cli.running import run_job


@click.command(
    "costs",
    epilog="""\b
Examples:
  throttle-sidecar pipeline costs --out tables --rates rates.toml --owners owners.toml
  throttle-sidecar pipeline costs --out tables --rates rates.toml --owners owners.toml \\
      --since 2026-11-01 --until 2026-12-01 --log-dirs log-dirs --focus focus.csv
""",
)
@cost_options
@job_options
def command(job: JobOptions, charged: CostOptions) -> None:
    """Split the bill among owners, by day and kind of usage.

    The costs of a day add up to its bill, to the cent. What belongs to no owner is the cost of
    "(nobody)". Kinds of usage that were not seen are left out, with the reason.
    """
    run_job(job, ["costs"], charged=charged)
