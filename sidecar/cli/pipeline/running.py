"""Runs stages of the pipeline's job for its commands, with progress and a summary.

Example: ``run_job(JobOptions("tables"), InputOptions(), [])`` runs all stages on tables that are
there.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from sidecar.cli.pipeline.job_options import InputOptions, JobOptions
from sidecar.cli.pipeline.progress import Progress
from sidecar.errors import SidecarError

if TYPE_CHECKING:
    # Not at run time: a command's help needs no Spark.
    from sidecar.pipeline.job import Inputs, Options, Outcome

_EXTRA: Final = ("pyspark", "pyarrow", "pandas", "numba", "google.protobuf")


class MissingExtraError(SidecarError):
    """The optional packages of the pipeline are not installed."""


def need_extra() -> None:
    """Refuses to go on without the optional packages.

    Raises:
        MissingExtraError: with the line that installs them.
    """
    missing = [name for name in _EXTRA if _is_missing(name)]
    if missing:
        raise MissingExtraError(
            f"the pipeline needs {', '.join(missing)}: pip install 'throttle-sidecar[pipeline]'"
        )


def run_job(job: JobOptions, inputs: InputOptions, stages: Sequence[str]) -> None:
    """Runs stages and prints what they did.

    Args:
        job: how.
        inputs: what is read.
        stages: their names; none for all.

    Raises:
        SidecarError: it can't be done.
    """
    need_extra()
    from sidecar.pipeline.job import Stage, run  # noqa: PLC0415 - the extra, and slow to import
    from sidecar.pipeline.spark import session  # noqa: PLC0415 - as above

    with Progress() as progress:
        progress.step("Spark")
        spark = session(job.master)
        progress.watch(spark)
        outcome = run(
            spark,
            job.out,
            _inputs(inputs),
            _options(job),
            stages=[Stage(name) for name in stages] or list(Stage),
            tell=progress.step,
        )
    click.echo(json.dumps(_document(outcome), indent=2) if job.as_json else _text(outcome))


def _is_missing(name: str) -> bool:
    try:
        return find_spec(name) is None
    except ModuleNotFoundError:
        return True


def _inputs(given: InputOptions) -> "Inputs":
    from sidecar.pipeline.job import Inputs  # noqa: PLC0415 - as above
    from sidecar.pipeline.paths import Zones  # noqa: PLC0415 - as above
    from sidecar.pipeline.silver_request import RequestLogs  # noqa: PLC0415 - as above

    logs = None
    if given.request_logs is not None:
        logs = RequestLogs(given.request_logs, Zones.of(given.zone), given.broker_pattern)
    return Inputs(logs, given.volumes)


def _options(job: JobOptions) -> "Options":
    from sidecar.pipeline.job import Options  # noqa: PLC0415 - as above

    as_of = job.as_of or datetime.now(UTC)
    return Options(as_of, job.since, job.until, job.allow_fewer)


def _document(outcome: "Outcome") -> dict[str, object]:
    return {
        "days": [day.isoformat() for day in outcome.days],
        "rows": outcome.rows,
        "files": outcome.files,
        "bytes": outcome.bytes,
        "quarantined": outcome.quarantined,
        "unknown": outcome.unknown,
        "rolled_forward": outcome.rolled_forward,
    }


def _text(outcome: "Outcome") -> str:
    lines = []
    if outcome.files:
        lines.append(f"{outcome.files:,} request logs, {outcome.bytes / 1e6:,.1f} MB")
    lines += [f"{name}: {count:,} rows" for name, count in outcome.rows.items()]
    if outcome.quarantined:
        lines.append(f"{outcome.quarantined:,} lines can't be read: see the table quarantine")
    if outcome.unknown:
        lines.append(f"{outcome.unknown:,} requests whose bytes or partitions no line tells")
    return "\n".join(lines)
