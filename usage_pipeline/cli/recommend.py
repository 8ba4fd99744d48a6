"""``throttle-sidecar pipeline recommend``: the smallest quotas that meet a target."""

import click

from usage_pipeline.cli.job_options import (
    ENTITY,
    JobOptions,
    TermsOptions,
    job_options,
    terms_options,
)
from usage_pipeline.cli.running import run_job


@click.command(
    "recommend",
    epilog="""\b
Examples:
  throttle-sidecar pipeline recommend --out tables --capacity capacity.json --plan plan.json
  throttle-sidecar quotas diff --plan plan.json --bootstrap-server localhost:9092
""",
)
@terms_options
@ENTITY
@job_options
def command(job: JobOptions, terms: TermsOptions, entity: str | None) -> None:
    """Recommend the smallest quotas that throttle few, and never for long.

    The command uses usage and replays, and sets no quotas. Compare its plan with "quotas diff
    --plan", and set it with "quotas apply --plan".
    """
    if job.since is not None or job.until is not None:
        raise click.UsageError(
            "recommendations are from all days in the tables: leave out --since and --until"
        )
    run_job(job, ["recommend"], terms=terms, entity=entity)
