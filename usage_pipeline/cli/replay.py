"""``throttle-sidecar pipeline replay``: what quotas would have done."""

import click

from usage_pipeline.cli.job_options import JobOptions, ReplayOptions, job_options, replay_options
from usage_pipeline.cli.running import run_job


@click.command(
    "replay",
    epilog="""\b
Examples:
  throttle-sidecar pipeline replay --out tables --candidates 40
  throttle-sidecar pipeline replay --out tables --candidates 0 --scenario x2 \\
      --scenario produce:user=alice:=1000000
""",
)
@replay_options
@job_options
def command(job: JobOptions, tried: ReplayOptions) -> None:
    """What quotas would have done: those in force, and candidates for all who share one.

    Event by event, as Kafka reckons. Each day starts with empty windows.
    """
    run_job(job, ["replay"], tried=tried)
