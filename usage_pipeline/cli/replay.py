"""``throttle-sidecar pipeline replay``: the effect of current and candidate quotas."""

import click

from usage_pipeline.cli.job_options import (
    ENTITY,
    JobOptions,
    ReplayOptions,
    job_options,
    replay_options,
)
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
@ENTITY
@job_options
def command(job: JobOptions, tried: ReplayOptions, entity: str | None) -> None:
    """Replay current quotas and candidates, event by event.

    The replay uses Kafka's arithmetic. Each day starts with empty windows.
    """
    run_job(job, ["replay"], tried=tried, entity=entity)
