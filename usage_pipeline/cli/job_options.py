"""What the pipeline's commands share: where tables are, which days, what is read.

Example::

    @click.command("silver")
    @input_options
    @job_options
    def command(job: JobOptions, inputs: InputOptions) -> None:
        run_job(job, inputs, ["silver"])
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import click

from usage_pipeline.cli.options import Size, gathered, shown
from usage_pipeline.cli.spark_options import CONF
from usage_pipeline.ingest.clusters import ClusterError, cluster_name
from usage_pipeline.recommend.terms import FLOORS, TermsError, floor
from usage_pipeline.runtime.addresses import address_of

_R = TypeVar("_R")

_FLOORS: Final = ", ".join(f"{name}={least:g}" for name, least in FLOORS.items())


class _Utc(click.DateTime):
    """A time, UTC: "2026-11-20" or "2026-11-20T10:30"."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - click's
        """Rather than strptime's letters, three times."""
        return "DATE[THH:MM[:SS]]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """With its time zone; refuses what is not a time."""
        found: datetime = super().convert(value, param, ctx)
        return found.replace(tzinfo=UTC)


class _NewFile(click.Path):
    """A file to be written, in a folder that exists: refused before the work, not after it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Refuses a file whose folder is not there."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"there is no folder {path.parent}; make it", param, ctx)
        return path


def _place(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    # Before Spark starts, whose messages would show credentials in it.
    if path is not None:
        address_of(path)
    return path


def _cluster(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    try:
        return None if name is None else cluster_name(name)
    except ClusterError as error:
        raise click.BadParameter(str(error)) from error


def _candidates(_: click.Context, __: click.Parameter, count: int) -> int:
    # A sweep has two ends.
    if count == 1:
        raise click.BadParameter("1 is too few: 0 for none, or 2 and more")
    return count


def _floors(
    _: click.Context, __: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, float], ...]:
    try:
        return tuple(floor(text) for text in texts)
    except TermsError as error:
        raise click.BadParameter(str(error)) from error


NEW_FILE: Final = _NewFile()
"""For options that are a file to be written."""
UTC_TIME: Final = _Utc(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])
"""For options that are a time."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How the job is run, from the command line: see each option's help. Times are UTC."""

    out: str
    cluster_id: str | None = None
    master: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    allow_fewer: bool = False
    retained_days: float = 7.0
    as_json: bool = False
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class InputOptions:
    """What is read, from the command line."""

    request_logs: str | None = None
    volumes: str | None = None
    quotas: Path | None = None
    zone: tuple[str, ...] = ()
    broker_pattern: str | None = None
    quotas_at: datetime | None = None

    @property
    def names_nothing(self) -> bool:
        """Whether there is nothing to read."""
        return self.request_logs is None and self.volumes is None and self.quotas is None


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What is replayed, from the command line."""

    candidates: int = 20
    scenario: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TermsOptions:
    """On which terms quotas are recommended, from the command line."""

    target: float = 1.0
    percentile: float = 99.0
    margin: float = 15.0
    half_life_days: float = 7.0
    floor: tuple[tuple[str, float], ...] = ()
    least_coverage: float = 50.0
    cluster_user: tuple[str, ...] = ()
    capacity: Path | None = None
    network: float | None = None
    disk: float | None = None
    plan: Path | None = None


@dataclass(frozen=True, slots=True)
class DiskOptions:
    """How disks are forecast, from the command line."""

    as_of: datetime | None = None
    limit_bytes: int = 0
    limit_ratio: float = 0.0
    horizon_days: float = 90.0
    history_days: float = 14.0


_REQUEST_LOGS: Final = click.option(
    "--request-logs",
    metavar="PATH",
    callback=_place,
    help="Files of the brokers' request logs, plain or gzip: a file, a folder or a glob;"
    " s3://, gs:// and hdfs:// too.",
)
ZONE: Final = click.option(
    "--zone",
    multiple=True,
    metavar="ZONE|BROKER=ZONE",
    help="The time zone of the brokers' clocks, Europe/Berlin, or of one, 3=UTC; may be repeated."
    " By default UTC.",
)
BROKER_PATTERN: Final = click.option(
    "--broker-pattern",
    metavar="REGEX",
    help="Finds the broker's id in a file's path, with a group named broker, and the cluster's name"
    " in one named cluster; by default broker-3, kafka-3, or a folder 3, and cluster_id=eu.",
)
CLUSTER_ID: Final = click.option(
    "--cluster-id",
    metavar="NAME",
    callback=_cluster,
    help="The cluster that it is about: the name of what no path names a cluster of; other"
    " clusters' files and rows are left out. By default all, as paths and the volume history say.",
)
RETAINED_DAYS: Final = shown(
    "--retained-days",
    click.FloatRange(0),
    7.0,
    "For which files are retained that others have replaced since, for those who read them.",
)


def job_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``job: JobOptions``."""
    return gathered(
        function,
        "job",
        JobOptions,
        click.option(
            "--out",
            required=True,
            metavar="DIR",
            callback=_place,
            help="The folder of the tables; s3:// and gs:// too.",
        ),
        CLUSTER_ID,
        click.option(
            "--master",
            metavar="URL",
            help="Spark's, spark://host:7077; by default what spark-submit says, or all cores of"
            " this machine.",
        ),
        click.option("--since", type=UTC_TIME, help="Leave out what was before; UTC."),
        click.option("--until", type=UTC_TIME, help="Leave out what was then or later; UTC."),
        click.option(
            "--allow-fewer",
            is_flag=True,
            help="Replace a day even by fewer requests than it has.",
        ),
        RETAINED_DAYS,
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        CONF,
    )


def input_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``inputs: InputOptions``."""
    return gathered(
        function,
        "inputs",
        InputOptions,
        _REQUEST_LOGS,
        click.option(
            "--volumes",
            metavar="PATH",
            callback=_place,
            help="The volume history that sidecars write: a file, a folder or a glob.",
        ),
        click.option(
            "--quotas",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help='What "quotas show --json" printed.',
        ),
        click.option(
            "--quotas-at",
            type=UTC_TIME,
            help="When those quotas were in force, UTC; by default when the file was written.",
        ),
        ZONE,
        BROKER_PATTERN,
    )


def log_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``inputs: InputOptions`` with request logs alone."""
    return gathered(function, "inputs", InputOptions, _REQUEST_LOGS, ZONE, BROKER_PATTERN)


def replay_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``tried: ReplayOptions``."""
    return gathered(
        function,
        "tried",
        ReplayOptions,
        shown(
            "--candidates",
            click.IntRange(0, 1000),
            20,
            "How many quotas to try for each who share one, from 5 % of their highest rate to"
            " 105 %.",
            callback=_candidates,
        ),
        click.option(
            "--scenario",
            multiple=True,
            metavar="[TYPE:[ENTITY:]]xN|=N",
            help='Other quotas to try: "x2", "request:=50", "produce:user=alice:=1000000"; may be'
            " repeated.",
        ),
    )


def terms_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``terms: TermsOptions``."""
    percent = click.FloatRange(0, 100)
    return gathered(
        function,
        "terms",
        TermsOptions,
        shown("--target", percent, 1.0, "Percent of charges that may have to wait."),
        shown(
            "--percentile", percent, 99.0, "Of a tenant's rates, that the quota is to let through."
        ),
        shown("--margin", click.FloatRange(0), 15.0, "Percent on top of that."),
        shown(
            "--half-life-days",
            click.FloatRange(0, min_open=True),
            7.0,
            "After so long a rate counts half; after four times as long it is not read, unless"
            " --since says so.",
        ),
        click.option(
            "--floor",
            multiple=True,
            callback=_floors,
            metavar="TYPE=NUMBER",
            help="The smallest quota of a type to recommend, in its unit; 0 for any; may be"
            f" repeated. By default {_FLOORS}.",
        ),
        shown(
            "--least-coverage", percent, 50.0, "Percent of the time that the logs have to cover."
        ),
        click.option(
            "--cluster-user",
            multiple=True,
            metavar="NAME",
            help="A broker's own principal, which must not be throttled; may be repeated.",
        ),
        click.option(
            "--capacity",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help='What "quotas capacity --json" printed.',
        ),
        click.option(
            "--network",
            type=Size(),
            metavar="SIZE",
            help="That a broker's network takes each way, per second.",
        ),
        click.option(
            "--disk",
            type=Size(),
            metavar="SIZE",
            help="That a broker's disks can write, per second.",
        ),
        click.option(
            "--plan",
            type=click.Path(dir_okay=False, path_type=Path),
            help='Write the quotas there, for "quotas diff --plan" and "quotas apply --plan".',
        ),
    )


def disk_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command ``disks: DiskOptions``."""
    days = click.FloatRange(0, min_open=True)
    return gathered(
        function,
        "disks",
        DiskOptions,
        click.option(
            "--as-of",
            type=UTC_TIME,
            help="When forecasts begin, UTC; by default with the newest reading.",
        ),
        shown(
            "--limit-bytes",
            Size(lowest=0),
            "0",
            "Available bytes at which the sidecars throttle producers.",
        ),
        shown(
            "--limit-ratio",
            click.FloatRange(0, 1, max_open=True),
            0.0,
            "Likewise, of the total; the greater of the two counts.",
        ),
        shown("--horizon-days", days, 90.0, "How far to look."),
        shown("--history-days", days, 14.0, "How far back readings count."),
    )
