"""``throttle-sidecar pipeline silver``: tables of requests, volumes and quotas."""

import click

from usage_pipeline.cli.job_options import InputOptions, JobOptions, input_options, job_options
from usage_pipeline.cli.running import run_job


@click.command(
    "silver",
    epilog="""\b
Examples:
  throttle-sidecar pipeline silver --request-logs logs --out tables
  throttle-sidecar pipeline silver --request-logs 'logs/*/kafka-request.log*' \\
      --zone Europe/Berlin --zone 3=UTC --since 2026-11-20 --until 2026-11-21 --out tables
  throttle-sidecar pipeline silver --volumes history --out tables
""",
)
@input_options
@job_options
def command(job: JobOptions, inputs: InputOptions) -> None:
    """Read request logs, volume history and quotas into tables.

    The command replaces whole days of requests, so give all logs of a day. Unreadable lines are in
    the table quarantine, with the reason.
    """
    run_job(job, ["silver"], inputs=inputs)
