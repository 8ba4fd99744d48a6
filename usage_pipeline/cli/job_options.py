"""Options of several commands: the tables' folder, the inputs, the days and the terms.

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

from sidecar.formats.gathered_options import gathered, read_by
from sidecar.formats.log4j_pattern import checked_pattern
from usage_pipeline.cli.options import Duration, Size, shown
from usage_pipeline.cli.spark_options import CONF
from usage_pipeline.ingest.clusters import ClusterError, cluster_name
from usage_pipeline.recommend.terms import (
    CONFIDENCES,
    FLOORS,
    LEAST_CONFIDENCE,
    TermsError,
    floor,
)
from usage_pipeline.runtime.addresses import address_of

_R = TypeVar("_R")

_DAY_S: Final = 86_400.0
_MOST_DAYS: Final = 36_500
_FLOORS: Final = ", ".join(f"{name}={least:g}" for name, least in FLOORS.items())


class _Utc(click.DateTime):
    """A time, UTC: "2026-11-20" or "2026-11-20T10:30"."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - click's
        """Return one format instead of all of strptime."""
        return "DATE[THH:MM[:SS]]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Convert to a time in UTC, or fail."""
        time: datetime = super().convert(value, param, ctx)
        return time.replace(tzinfo=UTC)


class _NewFile(click.Path):
    """A file to write. Its folder must exist, which is checked before the work starts."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Fail if the folder does not exist."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"the folder {path.parent} does not exist; create it", param, ctx)
        return path


def _place(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    # Checked before Spark starts, because Spark's messages would show credentials in the path.
    if path is not None:
        address_of(path)
    return path


def _candidates(_: click.Context, __: click.Parameter, count: int) -> int:
    # The first and the last candidate are the two ends of a sweep.
    if count == 1:
        raise click.BadParameter("1 candidate is too few; use 0 for none, or at least 2")
    return count


def _keep(_: click.Context, __: click.Parameter, seconds: float | None) -> float | None:
    if seconds is not None and seconds % _DAY_S:
        raise click.BadParameter("tables have whole days; use a number of days, such as P90D")
    return seconds


def _retained(_: click.Context, __: click.Parameter, days: float) -> float:
    if not days <= _MOST_DAYS:  # Also if it is not a number.
        raise click.BadParameter(f"use a number of days up to {_MOST_DAYS:,}")
    return days


NEW_FILE: Final = _NewFile()
"""The type of options for a file to write."""
UTC_TIME: Final = _Utc(["%Y-%m-%d", *(f"%Y-%m-%dT%H:%M{end}" for end in ("", ":%S", "Z", ":%SZ"))])
"""The type of options for a time."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How to run the job: see the help of each option. Times are in UTC."""

    out: str
    cluster_id: str | None = None
    master: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    allow_fewer: bool = False
    retained_days: float = 7.0
    keep: float | None = None
    as_json: bool = False
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class InputOptions:
    """The inputs on the command line."""

    request_logs: str | None = None
    volumes: str | None = None
    quotas: Path | None = None
    zone: tuple[str, ...] = ()
    broker_pattern: str | None = None
    layout: str | None = None
    quotas_at: datetime | None = None

    @property
    def names_nothing(self) -> bool:
        """Whether no input is named."""
        return self.request_logs is None and self.volumes is None and self.quotas is None


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The quotas to replay."""

    candidates: int = 20
    scenario: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TermsOptions:
    """The terms of recommendations."""

    target: float = 1.0
    longest_wait: float = 30.0
    percentile: float = 99.0
    margin: float = 15.0
    half_life_days: float = 7.0
    floor: tuple[tuple[str, float], ...] = ()
    least_coverage: float = 50.0
    least_confidence: str = LEAST_CONFIDENCE
    cluster_user: tuple[str, ...] = ()
    capacity: Path | None = None
    network: float | None = None
    disk: float | None = None
    plan: Path | None = None


@dataclass(frozen=True, slots=True)
class DiskOptions:
    """The settings of forecasts."""

    as_of: datetime | None = None
    limit_bytes: int = 0
    limit_ratio: float = 0.0
    horizon_days: float = 90.0
    history_days: float = 28.0
    retention: float = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class CostOptions:
    """The files of the bill."""

    rates: Path
    owners: Path
    log_dirs: Path | None = None
    focus: Path | None = None


_REQUEST_LOGS: Final = click.option(
    "--request-logs",
    metavar="PATH",
    callback=_place,
    help="Request logs of the brokers, plain or gzip: a file, a folder or a glob; also s3://,"
    " gs:// and hdfs://.",
)
ZONE: Final = click.option(
    "--zone",
    multiple=True,
    metavar="ZONE|BROKER=ZONE",
    help="Time zone of the brokers' clocks, such as Europe/Berlin, or of one broker, such as 3=UTC."
    " May be repeated. Default: UTC.",
)
BROKER_PATTERN: Final = click.option(
    "--broker-pattern",
    metavar="REGEX",
    help="Finds the broker's id (group broker) and the cluster's name (group cluster) in a path."
    " Default: broker-3, kafka-3 or a folder 3, and cluster_id=eu.",
)
ENTITY: Final = click.option(
    "--entity",
    type=click.Choice(["user", "client-id", "user,client-id"]),
    help="Whom to recommend quotas for, of a kind that has no quotas yet; use the same for replay"
    " and recommend. Default: the user, or the client-id where clients do not log in.",
)
LAYOUT: Final = click.option(
    "--layout",
    metavar="PATTERN",
    callback=read_by(checked_pattern, click.BadParameter, ValueError),
    help="The pattern of the logs' layout in log4j, needed only if \"request-log check\" can't read"
    " a log without it.",
)
OUT: Final = click.option(
    "--out",
    required=True,
    metavar="DIR",
    callback=_place,
    help="Folder of the tables; also s3:// and gs://.",
)
CLUSTER_ID: Final = click.option(
    "--cluster-id",
    metavar="NAME",
    callback=read_by(cluster_name, click.BadParameter, ClusterError),
    help="The only cluster to process. It is the cluster of files whose path names none."
    " Default: all clusters that paths and the volume history name.",
)
RETAINED_DAYS: Final = shown(
    "--retained-days",
    click.FloatRange(0),
    7.0,
    "Days before a replaced file is removed, so that readers can finish.",
    callback=_retained,
)


def job_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Add the options of a job as ``job: JobOptions``."""
    return gathered(
        function,
        "job",
        JobOptions,
        OUT,
        CLUSTER_ID,
        click.option(
            "--master",
            metavar="URL",
            help="Spark master, such as spark://host:7077. Default: the master of spark-submit, or"
            " all cores of this machine.",
        ),
        click.option("--since", type=UTC_TIME, help="Skip earlier requests and readings (UTC)."),
        click.option(
            "--until", type=UTC_TIME, help="Skip requests and readings from then on (UTC)."
        ),
        click.option(
            "--allow-fewer",
            is_flag=True,
            help="Replace a day even if the new logs have fewer requests.",
        ),
        RETAINED_DAYS,
        click.option(
            "--keep",
            type=Duration(),
            callback=_keep,
            help="Drop days that are older than this, such as P90D. Gold tables keep four times as"
            " many days, and gold_cost keeps all. Default: keep all.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        CONF,
    )


def input_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Add the options for inputs as ``inputs: InputOptions``."""
    return gathered(
        function,
        "inputs",
        InputOptions,
        _REQUEST_LOGS,
        click.option(
            "--volumes",
            metavar="PATH",
            callback=_place,
            help="Volume history of the sidecars: a file, a folder or a glob.",
        ),
        click.option(
            "--quotas",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help='Output of "quotas show --json".',
        ),
        click.option(
            "--quotas-at",
            type=UTC_TIME,
            help="Time of these quotas (UTC). Default: when the file was written.",
        ),
        ZONE,
        BROKER_PATTERN,
        LAYOUT,
    )


def log_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Add the options for request logs as ``inputs: InputOptions``."""
    return gathered(function, "inputs", InputOptions, _REQUEST_LOGS, ZONE, BROKER_PATTERN, LAYOUT)


def replay_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Add the options of a replay as ``tried: ReplayOptions``."""
    return gathered(
        function,
        "tried",
        ReplayOptions,
        shown(
            "--candidates",
            click.IntRange(0, 1000),
            20,
            "Number of quotas to replay for each group of clients that share a quota, from 5 % to"
            " 105 % of their highest rate.",
            callback=_candidates,
        ),
        click.option(
            "--scenario",
            multiple=True,
            metavar="[TYPE:[ENTITY:]]xN|=N",
            help='Another quota to replay: "x2", "request:=50", "produce:user=alice:=1000000".'
            " May be repeated.",
        ),
    )


def terms_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Add the terms of recommendations as ``terms: TermsOptions``."""
    percent = click.FloatRange(0, 100)
    return gathered(
        function,
        "terms",
        TermsOptions,
        shown(
            "--target",
            percent,
            1.0,
            "Percentage of charges, and of their amount, that the quota may throttle.",
        ),
        shown(
            "--longest-wait", Duration(), "30s", "Longest throttle time, and wait of queued usage."
        ),
        shown("--percentile", percent, 99.0, "Percentile of a tenant's rates below the quota."),
        shown("--margin", click.FloatRange(0), 15.0, "Percentage on top of that percentile."),
        shown(
            "--half-life-days",
            click.FloatRange(0, min_open=True),
            7.0,
            "Days in which the weight of a rate halves. Rates older than four times this, and than"
            " 35 days, are not read.",
        ),
        click.option(
            "--floor",
            multiple=True,
            callback=read_by(
                lambda texts: tuple(map(floor, texts)), click.BadParameter, TermsError
            ),
            metavar="TYPE=NUMBER",
            help="Smallest recommended quota of a type, in its unit; 0 for none. May be repeated."
            f" Default: {_FLOORS}.",
        ),
        shown("--least-coverage", percent, 50.0, "Percentage of the time that logs must cover."),
        click.option(
            "--cluster-user",
            multiple=True,
            metavar="NAME",
            help="Principal of a broker, which must not be throttled. May be repeated.",
        ),
        click.option(
            "--capacity",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help='Output of "quotas capacity --json".',
        ),
        click.option(
            "--network",
            type=Size(),
            metavar="SIZE",
            help="Capacity of a broker's network per second, in each direction.",
        ),
        click.option(
            "--disk",
            type=Size(),
            metavar="SIZE",
            help="What a broker's disks can write per second.",
        ),
        shown(
            "--least-confidence",
            click.Choice(CONFIDENCES),
            LEAST_CONFIDENCE,
            "Least confidence of a quota in the plan.",
        ),
        click.option(
            "--plan",
            type=click.Path(dir_okay=False, path_type=Path),
            help='Write the quotas there, for "quotas diff --plan" and "quotas apply --plan".',
        ),
    )


def disk_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Add the settings of forecasts as ``disks: DiskOptions``."""
    days = click.FloatRange(0, min_open=True)
    return gathered(
        function,
        "disks",
        DiskOptions,
        click.option(
            "--as-of",
            type=UTC_TIME,
            help="Start of the forecasts (UTC). Default: the newest reading until now.",
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
            "The same as a ratio of the total size; the larger limit applies.",
        ),
        shown("--horizon-days", days, 90.0, "Days to forecast."),
        shown("--history-days", days, 28.0, "Days of readings to use."),
        shown(
            "--retention",
            Duration(),
            "P7D",
            "Longest retention of the topics. Usage may level off once it begins to delete.",
        ),
    )


def cost_options(function: Callable[..., _R]) -> Callable[..., _R]:
    """Add the files of the bill as ``charged: CostOptions``."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    return gathered(
        function,
        "charged",
        CostOptions,
        click.option(
            "--rates", required=True, type=file, help="TOML file of the prices, or of the bills."
        ),
        click.option(
            "--owners",
            required=True,
            type=file,
            help="TOML file of the owners of users, client-ids and topics.",
        ),
        click.option(
            "--log-dirs",
            type=click.Path(exists=True, path_type=Path),
            help='Output of "kafka-log-dirs.sh --describe", in a file named by its day, such as'
            " log-dirs-2026-11-20.json, or a folder of these.",
        ),
        click.option(
            "--focus", type=NEW_FILE, help="Write the costs there too, as CSV in FOCUS's columns."
        ),
    )
