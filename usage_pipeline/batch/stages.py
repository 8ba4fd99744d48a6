"""The stages of the batch job: their inputs, and the tables that they write.

A stage reads the tables of earlier stages, of this run or of an earlier one, through the run's
store.

A day is replaced as a whole. In the gold tables, a request that was charged before midnight and
answered after it belongs to the day of the charge, so that day is replaced too.

Example: with logs of 21 November, ``usage`` replaces that day in gold_usage_1s. It also replaces
20 November if a line of 00:00:00.020 was charged at 23:59:59.990.
"""

from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final

from pyspark.sql import functions as sql

from sidecar.requestlog.rejected import RejectedKind
from usage_pipeline.batch.logs_stage import usage_of_logs
from usage_pipeline.batch.run import InputsError, Run, time_of
from usage_pipeline.batch.silver_stage import changes, silver, valid
from usage_pipeline.costs.cost_table import Billing, costs
from usage_pipeline.costs.rates import Kind
from usage_pipeline.forecast.forecast_table import disk_forecast
from usage_pipeline.recommend.recommendation_table import gold_recommendation
from usage_pipeline.recommend.terms import Terms
from usage_pipeline.replay.entities import by_default, configured_kinds, entities_in_words
from usage_pipeline.replay.peaks import peaks
from usage_pipeline.replay.replay_table import Candidates, replay
from usage_pipeline.replay.scenarios import IN_FORCE
from usage_pipeline.silver.requests import Requests
from usage_pipeline.tables.days import asked_days, last_days, newest_day, no_requests
from usage_pipeline.tables.schemas import (
    DIM_TOPIC,
    GOLD_COST,
    GOLD_DISK_FORECAST,
    GOLD_RECOMMENDATION,
    GOLD_REPLAY,
    GOLD_USAGE_1S,
    QUARANTINE,
    SILVER_QUOTA_CONFIG,
    SILVER_REQUEST,
    SILVER_VOLUME,
    Table,
)
from usage_pipeline.usage.mutations import MutationRequests, usage_of
from usage_pipeline.usage.usage_reader import UsageRows
from usage_pipeline.usage.usage_writer import write_usage

_DAY: Final = timedelta(days=1)
_FEW: Final = 10
"""A file with fewer requests may have whole seconds by chance."""
_HALF_LIVES: Final = 4
"""An older rate counts less than a sixteenth, and the tables may have a year of them."""
_LEAST_DAYS: Final = 35.0
"""Days count at least so long: a job that runs once a month is among them."""


class Stage(StrEnum):
    """The stages of the job, in the order in which they run."""

    SILVER = "silver"
    """Tables of request logs, volume history and quotas."""
    USAGE = "usage"
    """gold_usage_1s."""
    REPLAY = "replay"
    """gold_replay."""
    RECOMMEND = "recommend"
    """gold_recommendation."""
    FORECAST = "forecast"
    """gold_disk_forecast."""
    COSTS = "costs"
    """gold_cost."""


OF_A_RUN: Final = tuple(stage for stage in Stage if stage is not Stage.COSTS)
"""The stages that need no rates."""


def _usage(run: Run) -> None:
    logs = run.inputs.request_logs
    if logs is not None and run.logs and SILVER_REQUEST not in run.store.written():
        usage_of_logs(run, logs)
        return
    days = _gold_days(run)
    run.store.write(GOLD_USAGE_1S, usage_of(_mutations(run, days)), days)
    requests = _charged(run, days)
    run.store.add(GOLD_USAGE_1S, write_usage(requests, run.store.target(GOLD_USAGE_1S)))


def _replay(run: Run) -> None:
    days = _gold_days(run)
    config = by_default(valid(run.store.read(SILVER_QUOTA_CONFIG), days[0]), run.options.entity)
    candidates = None
    if run.options.candidates:
        usage = UsageRows(run.spark, run.store.files(GOLD_USAGE_1S, days))
        candidates = Candidates(peaks(usage, config), run.options.candidates)
    scenarios = [IN_FORCE, *run.options.scenarios]
    requests = _charged(run, days)
    replayed = replay(requests, _mutations(run, days), config, scenarios, candidates=candidates)
    run.store.write(GOLD_REPLAY, replayed, days)


def _recommend(run: Run) -> None:
    options, store = run.options, run.store
    counted = max(_HALF_LIVES * options.terms.half_life_days, _LEAST_DAYS)
    days = _newest_days(run, GOLD_USAGE_1S, counted)
    usage = UsageRows(run.spark, store.files(GOLD_USAGE_1S, days))
    brokers = (run.requests or run.requests_of(days)).cluster_clients()
    config = valid(store.read(SILVER_QUOTA_CONFIG), days[0])
    configured = configured_kinds(config)
    run.entities = entities_in_words(configured, options.entity)
    recommended = gold_recommendation(
        usage,
        store.read(GOLD_REPLAY, _newest_days(run, GOLD_REPLAY, counted)),
        by_default(config, options.entity, configured),
        replace(_terms(run, days), cluster_clients=brokers),
        options.capacity,
        day=days[-1],
    )
    run.store.write(GOLD_RECOMMENDATION, recommended)


def _terms(run: Run, days: Sequence[date]) -> Terms:
    """Return the terms, with how well the requests of each broker were read.

    They are of the files with requests of these days. A file without a readable request has no day;
    it lowers the coverage.
    """
    is_request = (sql.col("kind") != str(RejectedKind.OTHER)) & sql.col("broker").isNotNull()
    read = run.requests_of(days).read_lines()
    rejected = run.store.read(QUARANTINE).where(is_request).groupBy("broker", "src_file")
    unread = rejected.agg(sql.count("*").alias("unread"))
    of_brokers = (
        read.join(unread, ["broker", "src_file"], "left")
        .groupBy("broker")
        .agg(
            sql.coalesce(sql.sum("unread"), sql.lit(0)),
            sql.sum("read"),
            sql.some(sql.col("is_whole") & (sql.col("read") >= _FEW)),
        )
        .collect()
    )
    return replace(
        run.options.terms,
        unread={broker: lost / (lost + count) for broker, lost, count, _ in of_brokers},
        whole_seconds=frozenset(broker for broker, _, _, is_whole in of_brokers if is_whole),
    )


def _newest_days(run: Run, table: Table, most: float) -> tuple[date, ...]:
    """Return the last days of a table until today, whichever days this run was asked for.

    The days that a run replaces must not choose the evidence: on a quiet day a small quota
    throttles nobody.
    """
    days = run.store.days_of(table)
    return last_days(days, newest_day(days, run.options.now.date()), most) if days else ()


def _forecast(run: Run) -> None:
    options, store = run.options, run.store
    days = store.days_of(SILVER_VOLUME)
    as_of = options.as_of or _newest_reading(run, days)
    if as_of is None:
        raise InputsError(
            "the tables have no volume history:"
            " make it with `throttle-sidecar pipeline silver --volumes PATH`"
        )
    of_history = last_days(days, as_of.astimezone(UTC).date(), options.forecasting.history_days + 1)
    volumes = store.read(SILVER_VOLUME, of_history)
    # A history that stopped must not be forecast again every day as if it were now.
    run_age = timedelta() if options.as_of else options.now - as_of
    forecasts = disk_forecast(
        volumes, as_of, options.forecasting, run_age_h=run_age / timedelta(hours=1)
    )
    store.write(GOLD_DISK_FORECAST, forecasts)


def _newest_reading(run: Run, days: Sequence[date]) -> datetime | None:
    """Return the time of the newest reading until now, because a sidecar's clock may be ahead."""
    if not days:
        return None
    now = run.options.now
    at_us = sql.unix_micros("observed_ts")
    until_now = sql.when(sql.col("observed_ts") <= sql.lit(now), at_us)
    newest = run.store.read(SILVER_VOLUME, [newest_day(days, now.date())]).agg(
        sql.coalesce(sql.max(until_now), sql.max(at_us))
    )
    return time_of(newest.collect()[0][0])


def _costs(run: Run) -> None:
    billing = run.options.billing
    days = () if billing is None else _billed_days(run, billing)
    if billing is None or not days:
        raise InputsError(
            "gold_usage_1s has no usage of the requested days: make it with"
            " `throttle-sidecar pipeline usage`, or change --since or --until"
        )
    run.costs = costs(run.store.read(GOLD_USAGE_1S, days), days, billing)
    rows = [tuple(asdict(cost).values()) for cost in run.costs]
    frame = run.spark.createDataFrame(rows, GOLD_COST.schema)
    run.store.write(GOLD_COST, GOLD_COST.select(frame), days)


def _billed_days(run: Run, billing: Billing) -> Sequence[date]:
    """Return the days with usage or a snapshot; with bills, all days of their months until today.

    A bill covers all days of its month, so days without usage have a part of it too. ``since`` and
    ``until`` limit the days of both. Without ``since``, days whose usage was dropped (``keeping``)
    after they were charged are left as they are.
    """
    since, until, today = run.options.since, run.options.until, run.options.now.date()
    days: Sequence[date] = asked_days(
        sorted({*run.store.days_of(GOLD_USAGE_1S), *billing.snapshots}), since, until
    )
    if days and billing.rates.bills:
        newest = newest_day(days, today)
        end = newest.replace(day=monthrange(newest.year, newest.month)[1])
        first = days[0].replace(day=1) if since is None else since.date()
        last = end if until is None else (until - timedelta(microseconds=1)).date()
        last = min(last, max(newest, today))
        days = [first + timedelta(days=after) for after in range((last - first).days + 1)]
    kept = _charged_before(run) if since is None else frozenset[date]()
    return [day for day in days if day not in kept]


def _charged_before(run: Run) -> frozenset[date]:
    """Return the days that were charged for usage that the tables no longer have."""
    used = run.store.days_of(GOLD_USAGE_1S)
    earlier = [day for day in run.store.days_of(GOLD_COST) if not used or day < used[0]]
    if not earlier:
        return frozenset()
    of_usage = sql.col("kind").isin(Kind.PRODUCED, Kind.FETCHED, Kind.REQUEST_TIME)
    seen = run.store.read(GOLD_COST, earlier).where(of_usage & sql.col("quantity").isNotNull())
    rows = seen.select("dt").distinct().collect()
    return frozenset(row.dt for row in rows)


STAGES: Final[Mapping[Stage, Callable[[Run], None]]] = {
    Stage.SILVER: silver,
    Stage.USAGE: _usage,
    Stage.REPLAY: _replay,
    Stage.RECOMMEND: _recommend,
    Stage.FORECAST: _forecast,
    Stage.COSTS: _costs,
}
"""The function of each stage; it raises ``SidecarError`` if it fails."""


def has_inputs(stage: Stage, run: Run) -> bool:
    """Return whether a cluster has a stage's inputs: one of several may have no logs or volumes."""
    match stage:
        case Stage.SILVER:
            return True
        case Stage.USAGE | Stage.REPLAY:
            return bool(run.logs or _asked_days(run))
        case Stage.RECOMMEND:
            return bool(run.store.days_of(GOLD_REPLAY))
        case Stage.FORECAST:
            return bool(run.store.days_of(SILVER_VOLUME))
        case Stage.COSTS:
            return bool(run.store.days_of(GOLD_USAGE_1S))


def _gold_days(run: Run) -> tuple[date, ...]:
    """Return the days to make gold tables for: those on which the requests were charged.

    Raises:
        InputsError: there are no requests.
    """
    days = run.store.written_days(SILVER_REQUEST) or _asked_days(run)
    if not days:
        raise InputsError(no_requests(run.store.days_of(SILVER_REQUEST)))
    before = {day - _DAY for day in days} - set(days)
    after = run.store.files(SILVER_REQUEST, [day + _DAY for day in before])
    late = Requests(run.spark, after, frozenset(before)).charged_days() if after else set()
    return tuple(sorted({*days, *late}))


def _asked_days(run: Run) -> tuple[date, ...]:
    days = run.store.days_of(SILVER_REQUEST)
    return asked_days(days, run.options.since, run.options.until)


def _charged(run: Run, days: Iterable[date]) -> Requests:
    """Return the requests charged on these days; some were answered on the following day."""
    days = frozenset(days)
    if run.requests is not None and run.requests.days == days:
        return run.requests
    answered = {*days, *(day + _DAY for day in days)}
    run.requests = Requests(run.spark, run.store.files(SILVER_REQUEST, answered), days)
    return run.requests


def _mutations(run: Run, days: Sequence[date]) -> MutationRequests:
    """Return the requests about topics that were charged on these days."""
    of_days = changes(run).where(sql.to_date("quota_ts").isin(*days))
    return MutationRequests.from_changes(of_days, valid(run.store.read(DIM_TOPIC), days[0]))
