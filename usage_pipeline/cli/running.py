"""Runs stages of the pipeline for its commands, with progress and a summary.

Example: ``run_job(JobOptions("tables"), ["usage"])`` writes gold_usage_1s from the requests in the
folder ``tables``.
"""

import json
import logging
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sidecar.errors import SettingsError
from sidecar.quotas.quota_file import read_quota_file
from usage_pipeline.cli.before_spark import (
    check_batch,
    check_logs,
    check_master,
    check_tables,
    check_volumes,
)
from usage_pipeline.cli.compiling import compiling
from usage_pipeline.cli.job_options import (
    CostOptions,
    DiskOptions,
    InputOptions,
    JobOptions,
    ReplayOptions,
    TermsOptions,
)
from usage_pipeline.cli.progress import Progress
from usage_pipeline.cli.spark_log import spark_log
from usage_pipeline.cli.summary import (
    document,
    left_out_of_plan,
    plan_line,
    scenarios_of_nobody,
    text,
)

if TYPE_CHECKING:
    # Not at run time, because the help of a command needs no Spark.
    from usage_pipeline.batch.job import Outcome
    from usage_pipeline.batch.run import Inputs, Options
    from usage_pipeline.costs.cost_table import Billing

_NO_QUOTAS: Final = (
    "without --quotas, only quota changes in the logs are known:"
    " `throttle-sidecar quotas show --json` prints them"
)


def run_job(
    job: JobOptions,
    stages: Sequence[str],
    *,
    inputs: InputOptions | None = None,
    tried: ReplayOptions | None = None,
    terms: TermsOptions | None = None,
    disks: DiskOptions | None = None,
    entity: str | None = None,
    charged: CostOptions | None = None,
) -> None:
    """Run stages and print a summary.

    Raises:
        SidecarError: a stage failed or can't run.
    """
    sources, replayed = inputs or InputOptions(), tried or ReplayOptions()
    plan = None if terms is None else terms.plan
    _check(job, stages, inputs, replayed, plan)
    if "silver" in stages and sources.request_logs is not None and sources.quotas is None:
        click.echo(_NO_QUOTAS, err=True)
    from usage_pipeline.batch.job import run  # noqa: PLC0415 - the extra, and slow to import
    from usage_pipeline.batch.stages import Stage  # noqa: PLC0415 - as above
    from usage_pipeline.runtime.session import session  # noqa: PLC0415 - as above

    read = inputs_of(sources)
    options = options_of(job, replayed, terms or TermsOptions(), disks or DiskOptions(), entity)
    if charged is not None:
        options = replace(options, billing=_billing_of(charged))
    with (
        _interruptible(),
        compiling(stages, is_here=_is_here(job.master)) as wait_for_kernels,
        spark_log() as log,
    ):
        with Progress() as progress:
            progress.step("Spark")
            spark = session(job.master, dict(job.conf), log=log, brief=True)
            signal.signal(signal.SIGINT, _interrupt)  # Spark has replaced the handler
            progress.watch(spark)

            def report(stage: Stage) -> None:
                progress.step(stage)
                wait_for_kernels(stage)

            outcome = run(
                spark,
                job.out,
                read,
                options,
                stages=[Stage(name) for name in stages],
                report=report,
            )
        # The page needs no workers, which have hundreds of megabytes each.
        spark.stop()
    click.echo(json.dumps(document(outcome), indent=2) if job.as_json else text(outcome))
    for line in scenarios_of_nobody(options.scenarios, outcome.replayed):
        click.echo(line, err=True)
    if plan is not None:
        least = (terms or TermsOptions()).least_confidence
        click.echo(plan_line(plan, _write_plan(plan, outcome, least)), err=job.as_json)
        for line in left_out_of_plan(outcome.recommended, least):
            click.echo(line, err=True)
    if charged is not None and charged.focus is not None:
        from usage_pipeline.costs.focus import focus  # noqa: PLC0415 - as above

        write_file(charged.focus, focus(outcome.costs, outcome.clusters[0]))


def _is_here(master: str | None) -> bool:
    """Whether this command starts the JVM for the work; for None, the variable MASTER decides."""
    from usage_pipeline.runtime.embedded import is_embedded  # noqa: PLC0415 - the extra

    url = master or os.environ.get("MASTER") or "local[*]"
    return "PYSPARK_GATEWAY_PORT" not in os.environ and is_embedded(url)


def _check(
    job: JobOptions,
    stages: Sequence[str],
    inputs: InputOptions | None,
    tried: ReplayOptions,
    plan: Path | None,
) -> None:
    """Check the options before Spark starts and before the job writes files."""
    if inputs is not None and inputs.names_nothing:
        raise SettingsError(("there are no inputs; use --request-logs, --volumes or --quotas",))
    if plan is not None and "recommend" not in stages:
        raise SettingsError(("--plan needs requests; use --request-logs",))
    if plan is not None and not plan.parent.is_dir() and plan.parent != Path(job.out):
        raise SettingsError((f"{plan}: the folder {plan.parent} does not exist; create it",))
    if job.since is not None and job.until is not None and job.since >= job.until:
        raise SettingsError(("--since must be before --until",))
    check_master(job.master)
    logs = None if inputs is None else inputs.request_logs
    check_batch(job.out, stages, reads_logs=logs is not None)
    if inputs is None:
        check_tables(job, stages, candidates=tried.candidates)
        return
    if logs is not None:
        check_logs(logs, inputs.zone, inputs.broker_pattern, job.cluster_id)
    if inputs.volumes is not None:
        check_volumes(inputs.volumes)


def _interrupt(*_: object) -> None:
    logging.disable(logging.CRITICAL)
    raise KeyboardInterrupt


@contextmanager
def _interruptible() -> Iterator[None]:
    """End the run at once on Ctrl-C, without tracebacks.

    Spark's own handler cancels jobs in the middle of another call, and its client logs tracebacks.
    The Java process and its jobs end with this process.
    """
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted. Run the command again.", err=True)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(logging.NOTSET)


def write_report(out: str, page: Path | None = None, cluster: str | None = None) -> Path | None:
    """Write the page of the tables, or a page for each cluster and one with links to them.

    Args:
        out: the folder of the tables.
        page: the file; None for the folder of the tables.
        cluster: the cluster to report; None for all.

    Returns:
        The file, or None if there is no page because the tables are in object storage.
    """
    from usage_pipeline.report import contents, report  # noqa: PLC0415 - as above
    from usage_pipeline.report.reading import read_tables  # noqa: PLC0415 - as above
    from usage_pipeline.tables.commits import pinned  # noqa: PLC0415 - as above
    from usage_pipeline.tables.folder import Folder  # noqa: PLC0415 - as above
    from usage_pipeline.tables.schemas import UNNAMED  # noqa: PLC0415 - as above

    folder = Folder.parse(out)
    here = folder.here
    page = page or (None if here is None else here / "report.html")
    if page is None:
        return None
    # All tables have the versions of one run, even if another run commits.
    tables, now = pinned(folder), datetime.now(UTC)
    clusters = [cluster] if cluster is not None else tables.clusters() or [UNNAMED]
    pages = {each: page.with_stem(f"{page.stem}-{each}") for each in clusters}
    if len(clusters) == 1:
        pages = dict.fromkeys(clusters, page)
    for each, path in pages.items():
        name = None if each == UNNAMED else each
        write_file(path, report(read_tables(tables, now.date(), each), now, name))
    if len(clusters) > 1:
        write_file(page, contents({each: path.name for each, path in pages.items()}, now))
    return page


def write_file(path: Path, text: str) -> None:
    """Write a file, or replace it atomically.

    Raises:
        SettingsError: the file can't be written.
    """
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            # Such as /dev/stdout, which must not be replaced.
            path.write_text(text, encoding="utf-8")
            return
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise SettingsError((f"{path} can't be written: {error.strerror}",)) from error


def inputs_of(options: InputOptions) -> "Inputs":
    """Return the inputs of the job.

    Raises:
        SidecarError: a file or a time zone can't be used.
    """
    from usage_pipeline.batch.run import Inputs, Snapshot  # noqa: PLC0415 - as above
    from usage_pipeline.ingest.paths import Zones  # noqa: PLC0415 - as above
    from usage_pipeline.ingest.request_logs import RequestLogs  # noqa: PLC0415 - as above

    logs = None
    if options.request_logs is not None:
        logs = RequestLogs(
            options.request_logs,
            Zones.parse(options.zone),
            options.broker_pattern,
            options.layout,
        )
    snapshot = None
    if options.quotas is not None:
        written = datetime.fromtimestamp(options.quotas.stat().st_mtime, UTC)
        snapshot = Snapshot(read_quota_file(options.quotas), options.quotas_at or written)
    return Inputs(logs, options.volumes, snapshot)


def options_of(
    job: JobOptions,
    tried: ReplayOptions,
    terms: TermsOptions,
    disks: DiskOptions,
    entity: str | None = None,
) -> "Options":
    """Return the settings of the job.

    Raises:
        SidecarError: a scenario or a file can't be used.
    """
    from usage_pipeline.batch.run import Options  # noqa: PLC0415 - as above
    from usage_pipeline.forecast.volume_forecast import Forecasting  # noqa: PLC0415 - as above
    from usage_pipeline.recommend.terms import FLOORS, Terms, capacity_of  # noqa: PLC0415 - as above
    from usage_pipeline.replay.scenarios import scenario  # noqa: PLC0415 - as above

    document = None if terms.capacity is None else _capacity_document(terms.capacity)
    return Options(
        now=datetime.now(UTC),
        cluster=job.cluster_id,
        has_plan=terms.plan is not None,
        as_of=disks.as_of,
        since=job.since,
        until=job.until,
        allow_fewer=job.allow_fewer,
        candidates=tried.candidates,
        scenarios=tuple(map(scenario, tried.scenario)),
        entity=entity,
        terms=Terms(
            target=terms.target / 100,
            longest_wait_s=terms.longest_wait,
            percentile=terms.percentile / 100,
            half_life_days=terms.half_life_days,
            margin=terms.margin / 100,
            floors={**FLOORS, **dict(terms.floor)},
            least_coverage=terms.least_coverage / 100,
            cluster_users=frozenset(terms.cluster_user),
        ),
        capacity=capacity_of(document, terms.network, terms.disk),
        forecasting=Forecasting(
            limit_bytes=disks.limit_bytes,
            limit_ratio=disks.limit_ratio,
            horizon_hours=disks.horizon_days * 24,
            history_days=disks.history_days,
            retention_hours=disks.retention / 3600,
        ),
        retained=timedelta(days=job.retained_days),
        keep=None if job.keep is None else timedelta(seconds=job.keep),
    )


def _billing_of(options: CostOptions) -> "Billing":
    from usage_pipeline.costs.cost_table import Billing  # noqa: PLC0415 - as above
    from usage_pipeline.costs.log_dirs import read_log_dirs  # noqa: PLC0415 - as above
    from usage_pipeline.costs.owners import read_owners  # noqa: PLC0415 - as above
    from usage_pipeline.costs.rates import read_rates  # noqa: PLC0415 - as above

    snapshots = {} if options.log_dirs is None else read_log_dirs(options.log_dirs)
    return Billing(read_rates(options.rates), read_owners(options.owners), snapshots)


def _capacity_document(path: Path) -> dict[str, object]:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SettingsError((f"{path} can't be read: {error}",)) from error
    if not isinstance(document, dict):
        raise SettingsError((f'{path} is not an output of "quotas capacity --json"',))
    return document


def _write_plan(path: Path, outcome: "Outcome", least_confidence: str) -> int:
    """Write the plan, and return the number of its entities."""
    from usage_pipeline.recommend.terms import recommended_quotas  # noqa: PLC0415 - as above

    document = recommended_quotas(outcome.recommended, least_confidence=least_confidence)
    write_file(path, json.dumps(document, indent=2) + "\n")
    return len(document["quotas"])
