"""What a run of the batch job gets, and what its stages pass on.

Example: logs of eu and of us are two runs of each stage, one with the store of eu's rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from sidecar.errors import SidecarError
from sidecar.quotas.entities import ClientQuotas
from usage_pipeline.forecast.volume_forecast import Forecasting
from usage_pipeline.ingest.paths import LogFile
from usage_pipeline.ingest.request_logs import RequestLogs
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.replay.scenarios import Scenario
from usage_pipeline.silver.requests import Requests
from usage_pipeline.silver.volume_table import History
from usage_pipeline.tables.schemas import SILVER_REQUEST, Table
from usage_pipeline.tables.store import Store


class InputsError(SidecarError):
    """A stage lacks what it reads."""


class NoneReadError(InputsError):
    """The logs have no request of the requested time."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The quotas that were set at a time, UTC."""

    quotas: ClientQuotas
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the job reads besides its own tables; None is not read.

    Without quotas only those are known that the logs have.
    """

    request_logs: RequestLogs | None = None
    volumes: str | None = None
    quotas: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How it is run.

    Attributes:
        now: when the run began, UTC.
        cluster: that it is about; None: all that are read, or that the tables have.
        has_plan: whether a plan is made of what is recommended, which is of one cluster.
        as_of: when forecasts begin, UTC; None: with the newest reading of a volume.
        since: requests that were answered before are not read; None: from the first.
        until: requests that were answered then or later are not read; None: to the last.
        allow_fewer: whether a day may be replaced by fewer requests than it has.
        candidates: how many quotas are tried for each who share one; 0 for none.
        scenarios: to be replayed besides those and the quotas in force.
        terms: on which quotas are recommended.
        capacity: of the smallest broker, by quota type.
        forecasting: how disks are forecast.
        retained: how long files are retained that a later run has replaced.
    """

    now: datetime
    cluster: str | None = None
    has_plan: bool = False
    as_of: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None
    allow_fewer: bool = False
    candidates: int = 20
    scenarios: tuple[Scenario, ...] = ()
    terms: Terms = field(default_factory=Terms)
    capacity: Mapping[str, float] = field(default_factory=dict)
    forecasting: Forecasting = field(default_factory=Forecasting)
    retained: timedelta = timedelta(days=7)


@dataclass(slots=True)
class Run:
    """A run of stages for a cluster.

    Attributes:
        spark: its time zone is UTC.
        store: of the cluster's tables.
        inputs: what is read.
        options: how.
        logs: the files of its request logs.
        history: with its volumes; None: there are none of it.
        files: of request logs, that were read.
        bytes: of them, as they are stored.
        quarantined: lines that can't be read.
        unknown: requests whose bytes or partitions no line has.
        requests: that the gold tables are made of; None: not yet read.
        replaces: the table no day of which may lose rows.
    """

    spark: SparkSession
    store: Store
    inputs: Inputs
    options: Options
    logs: tuple[LogFile, ...] = ()
    history: History | None = None
    files: int = field(default=0, init=False)
    bytes: int = field(default=0, init=False)
    quarantined: int = field(default=0, init=False)
    unknown: int = field(default=0, init=False)
    requests: Requests | None = field(default=None, init=False)
    replaces: Table = field(default=SILVER_REQUEST, init=False)

    def requests_of(self, days: Sequence[date]) -> Requests:
        """Those that were answered on some days."""
        return Requests(self.spark, self.store.files(SILVER_REQUEST, days))

    def all_requests(self) -> Requests:
        """Of all days that the table will have."""
        return self.requests_of(self.store.days_of(SILVER_REQUEST))


def time_of(us: int | None) -> datetime | None:
    """A time of Spark's, from microseconds since 1970."""
    # From a number: a time that Spark gives back is of this process's zone, and does not say so.
    return None if us is None else datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)
