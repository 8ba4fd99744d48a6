"""The inputs of the batch job, and the values that its stages exchange.

Example: logs of eu and of us are two runs of each stage, one of them with the store of eu's rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from sidecar.errors import SidecarError
from sidecar.quotas.entities import ClientQuotas
from usage_pipeline.costs.allocation import Cost
from usage_pipeline.costs.cost_table import Billing
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
    """An input of a stage is missing."""


class NoneReadError(InputsError):
    """The logs have no requests of the requested time."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The quotas that applied at a time, in UTC."""

    quotas: ClientQuotas
    as_of: datetime


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the job reads besides its own tables; None leaves an input out.

    Without a snapshot, only the quotas in the logs are known.
    """

    request_logs: RequestLogs | None = None
    volumes: str | None = None
    quotas: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run.

    Attributes:
        now: when the run began, UTC.
        cluster: the cluster to run for; None for all in the inputs or the tables.
        has_plan: whether the recommendations become a plan, which applies to one cluster.
        as_of: when forecasts begin, UTC; None for the time of the newest reading
            until ``now``.
        since: requests answered earlier are not read, UTC; None for no lower bound.
        until: requests answered then or later are not read, UTC; None for no upper bound.
        allow_fewer: whether a day may be replaced by fewer requests than it has.
        candidates: how many quotas to try for each name that shares one; 0 for none.
        scenarios: scenarios to replay, besides the candidates and the present quotas.
        entity: whom quotas are for, of kinds without quotas: "user", "client-id" or
            "user,client-id"; None for the user, or the client-id without a login.
        terms: the terms of recommendations.
        capacity: the capacity of the smallest broker, by quota type.
        forecasting: the settings of disk forecasts.
        billing: the rates and owners, which apply to one cluster; None without costs.
        retained: how long files are kept after a later run has replaced them.
        keep: how long days are kept (``keeping``); None for ever.
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
    entity: str | None = None
    terms: Terms = field(default_factory=Terms)
    capacity: Mapping[str, float] = field(default_factory=dict)
    forecasting: Forecasting = field(default_factory=Forecasting)
    billing: Billing | None = None
    retained: timedelta = timedelta(days=7)
    keep: timedelta | None = None


@dataclass(slots=True)
class Run:
    """A run of stages for a cluster.

    Attributes:
        spark: the session; its time zone is UTC.
        store: the cluster's tables.
        inputs: the inputs of the job.
        options: the options of the run.
        logs: the files of the cluster's request logs.
        history: a volume history with the cluster's volumes; None without one.
        quarantined: lines that can't be read.
        unknown: requests whose bytes or partitions are in no line.
        entities: for each kind of quota, whom quotas are recommended for, and why.
        costs: the new rows of gold_cost.
        requests: the requests for the gold tables; None before they are read.
        changes: the requests about topics and quotas, for all days; None before they are read.
        replaces: the table whose days must not lose rows.
    """

    spark: SparkSession
    store: Store
    inputs: Inputs
    options: Options
    logs: tuple[LogFile, ...] = ()
    history: History | None = None
    quarantined: int = field(default=0, init=False)
    unknown: int = field(default=0, init=False)
    entities: Mapping[str, str] = field(default_factory=dict, init=False)
    costs: Sequence[Cost] = field(default=(), init=False)
    requests: Requests | None = field(default=None, init=False)
    changes: DataFrame | None = field(default=None, init=False)
    replaces: Table = field(default=SILVER_REQUEST, init=False)

    @property
    def is_streamed(self) -> bool:
        """Whether a stream writes the requests of these tables."""
        return SILVER_REQUEST.name in self.store.before.streamed

    def requests_of(self, days: Sequence[date]) -> Requests:
        """Return the requests that were answered on some days."""
        return Requests(self.spark, self.store.files(SILVER_REQUEST, days))


def time_of(us: int | None) -> datetime | None:
    """Convert a time of Spark from microseconds since 1970."""
    # Spark would return a time in this process's zone, without stating the zone.
    return None if us is None else datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)
