"""``throttle-sidecar pipeline usage``: the usage of each client by the second."""

import click

from sidecar.errors import SettingsError
from usage_pipeline.cli.job_options import InputOptions, JobOptions, job_options, log_options
from usage_pipeline.cli.running import run_job


@click.command(
    "usage",
    epilog="""\b
Examples:
  throttle-sidecar pipeline usage --request-logs logs --out tables
  throttle-sidecar pipeline usage --out tables
  throttle-sidecar pipeline usage --out tables --since 2026-11-20 --until 2026-11-21
""",
)
@log_options
@job_options
def command(job: JobOptions, inputs: InputOptions) -> None:
    """Compute the usage of each client, second by second.

    The command reads the requests in the tables. With --request-logs it reads the logs directly
    and stores no requests, so that they can't be replayed, and does not count partitions of topics
    that grow or are deleted. --since and --until then refer to the times of the charges.
    """
    if inputs.names_nothing and inputs != InputOptions():
        raise SettingsError(("--zone and --broker-pattern need --request-logs",))
    run_job(job, ["usage"], inputs=None if inputs.names_nothing else inputs)
