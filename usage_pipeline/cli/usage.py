"""``throttle-sidecar pipeline usage``: who used how much, second by second."""

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
    """Who used how much of each broker, second by second.

    From the requests in the tables, or with --request-logs straight from the logs, of which no
    requests are stored then: nothing can be replayed, and of topics that grow or are deleted the
    partitions are not counted. --since and --until are then about when requests were charged.
    """
    if inputs.names_nothing and inputs != InputOptions():
        raise SettingsError(("--zone and --broker-pattern are about --request-logs: name those",))
    run_job(job, ["usage"], inputs=None if inputs.names_nothing else inputs)
