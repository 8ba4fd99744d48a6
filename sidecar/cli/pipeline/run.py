"""``throttle-sidecar pipeline run``: all of it, from logs to every table.

Example: ``throttle-sidecar pipeline run --request-logs logs --quotas quotas.json --out tables``.
"""

import click

from sidecar.cli.pipeline.job_options import InputOptions, JobOptions, input_options, job_options
from sidecar.cli.pipeline.running import run_job


@click.command(
    "run",
    epilog="""\b
Examples:
  throttle-sidecar pipeline run --request-logs logs --volumes history \\
      --quotas quotas.json --out tables
  throttle-sidecar pipeline run --request-logs s3://bucket/logs --out tables \\
      --since 2026-11-20 --until 2026-11-21
""",
)
@input_options
@job_options
def command(job: JobOptions, inputs: InputOptions) -> None:
    """Make every table, and put them in place of the last good ones: all, or none.

    A day of requests is replaced whole: give all logs of it.
    """
    run_job(job, inputs, [])
