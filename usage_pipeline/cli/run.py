"""``throttle-sidecar pipeline run``: all stages but costs, from logs to the report."""

import click

from usage_pipeline.cli.job_options import (
    ENTITY,
    DiskOptions,
    InputOptions,
    JobOptions,
    ReplayOptions,
    TermsOptions,
    disk_options,
    input_options,
    job_options,
    replay_options,
    terms_options,
)
from usage_pipeline.cli.running import run_job, write_report


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
@replay_options
@terms_options
@ENTITY
@disk_options
@job_options
def command(
    job: JobOptions,
    *,
    inputs: InputOptions,
    tried: ReplayOptions,
    terms: TermsOptions,
    disks: DiskOptions,
    entity: str | None,
) -> None:
    """Run all stages but costs, and write the report.

    The run replaces all tables at once, or none if it fails. It replaces whole days of requests,
    so give all logs of a day.
    """
    of_requests = ["usage", "replay", "recommend"] if inputs.request_logs is not None else []
    of_volumes = ["forecast"] if inputs.volumes is not None else []
    stages = ["silver", *of_requests, *of_volumes]
    run_job(job, stages, inputs=inputs, tried=tried, terms=terms, disks=disks, entity=entity)
    page = write_report(job.out)
    if page is not None:
        click.echo(f"report: {page}", err=job.as_json)
