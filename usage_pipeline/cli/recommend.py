"""``throttle-sidecar pipeline recommend``: the smallest quotas under a target of throttling."""

import click

from usage_pipeline.cli.job_options import JobOptions, TermsOptions, job_options, terms_options
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
@job_options
def command(job: JobOptions, terms: TermsOptions) -> None:
    """The smallest quotas that keep throttling under a target, from usage and replays.

    Nothing is set: compare with "quotas diff --plan", and then "quotas apply --plan".
    """
    run_job(job, ["recommend"], terms=terms)
