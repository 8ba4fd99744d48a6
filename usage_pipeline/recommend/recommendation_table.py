"""The smallest quota that throttles few, and never for long: GOLD_RECOMMENDATION.

For each tenant and quota type, the quota is the largest of four values: the weighted percentile of
the rates (``evidence``) plus a margin; the smallest candidate that passes on all days of the
tables; the lowest rate under which usage that queues waits no longer than the longest wait
(``kernels.delay``); and a floor.

A candidate passes if its replays throttle at most the target share of charges and of their amount,
such as bytes, on all brokers and days together, and none of them for longer than the longest wait.
The share of charges alone would cut a nightly job that writes in few large requests. A percentile
does not show such a burst either. A replay takes each request at the time of the log, so it does
not show that a throttled client falls behind. The queue does.

Candidates are values of one series (``scenarios.candidates``), but each run tries those around its
own peaks. A day that did not try a value counts with the largest smaller one that it tried, which
throttles at least as much. So the shares and the longest wait of a recommendation are upper bounds,
and runs day by day give the same as one run of all days.

Example: alice's 99th percentile is 1.0 MB/s, or 1.15 MB/s with a margin of 15 %. In the replay,
1.0 MB/s throttles 4 % of her requests, 1.4 MB/s 0.6 % for up to 40 s, and 2.0 MB/s 0.2 % for up to
3 s. With a target of 1 % and 30 s, the quota is 2.0 MB/s.

A recommendation is refused if the logs cover too little of the time, if no candidate was replayed
or passes, and if brokers would share the quota (``entities_of_brokers``). It is refused if a day of
usage has no replay under the tenant's name: quotas that have changed since then may have grouped
its clients differently, and that day may be the one with the peak. A quota that would also apply to
clients of other tenants is refused too (``unfit``), and a quota for clients whose name is unclear.
It is also refused if many charges have unknown amounts: the response to a throttled FETCH is empty,
so the log does not show the demand. If more than 5 % of a broker's requests could not be read,
everything is refused, since any tenant may have sent them, and the lines that are cut are those of
large requests.

A quota for request time is five times as large, because the log lacks the network threads' time.

``_caveats`` has all that lowers the confidence. It is low, whatever the data, if more than 5 % of
the charges were throttled: those clients wanted to send more, but the replay only knows the
requests that they sent.

Source: the decayed percentile with a margin is that of Kubernetes' vertical pod autoscaler.
"""

from collections.abc import Mapping
from datetime import date
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from usage_pipeline.kernels.delay import delays_until
from usage_pipeline.recommend.evidence import TENANT, evidence
from usage_pipeline.recommend.terms import UNCLEAR_NAME, Terms, entities_of_brokers
from usage_pipeline.recommend.unfit import unfit
from usage_pipeline.tables.schemas import GOLD_RECOMMENDATION
from usage_pipeline.usage.quota_types import ANONYMOUS, KEYS
from usage_pipeline.usage.usage_reader import UsageRows

_COVERAGE: Final = (0.8, 0.95)
_HOURS: Final = (24, 168)
_CHARGES: Final = (1_000, 10_000)
"""What a medium confidence needs, and a high one."""
_MEDIUM_WAIT_MS: Final = 5_000
"""Above this wait, the confidence is at most medium."""
_MS: Final = 1_000
_NETWORK: Final = 4.0
"""Room for the network threads' time, as a share of the handlers' time. Kafka charges it too, and
the log lacks it. This is the largest median of ``python -m benchmarks network_time``."""
_MOST_UNREAD: Final = 0.05
"""Above this share of a broker's requests that could not be read, nothing is recommended."""
_MEDIUM_UNREAD: Final = 0.01
_MEDIUM_UNKNOWN: Final = 0.01
"""Above these shares, the confidence is at most medium."""
_MOMENTS: Final = 3
_MOST_UNKNOWN: Final = 0.05
"""Above this share of unknown charges, a recommendation is refused."""
_MOST_THROTTLED: Final = 0.05
"""Above this share of throttled charges, the log does not show the full demand."""


def gold_recommendation(
    usage: UsageRows,
    replay: DataFrame,
    config: DataFrame,
    terms: Terms,
    capacity: Mapping[str, float],
    *,
    day: date,
) -> DataFrame:
    """Recommend quotas.

    Args:
        usage: the usage of the days that count.
        replay: rows of GOLD_REPLAY of the days that count; the scenarios that start with "=" are
            candidates.
        config: rows of SILVER_QUOTA_CONFIG.
        terms: the terms of recommendations.
        capacity: the capacity of the smallest broker, by quota type: ``terms.capacity_of``.
        day: the newest day of the usage, which is that of all rows.

    Returns:
        A row of GOLD_RECOMMENDATION for each tenant and quota type.
    """
    seen = evidence(usage, config, terms)
    joined = seen.join(_candidates(replay, terms), list(TENANT), how="left").join(
        unfit(usage, config), list(TENANT), how="left"
    )
    quota = _quota(terms)
    decided = joined.withColumn("refused", _refused(terms)).withColumn(
        "quota", sf.when(sf.col("refused").isNull(), quota)
    )
    completed = _completed(decided, terms, capacity).withColumn("dt", sf.lit(day))
    return GOLD_RECOMMENDATION.select(completed)


def _candidates(replay: DataFrame, terms: Terms) -> DataFrame:
    """For each tenant: what its days tried, and the least candidate that passes."""
    in_force = sf.col("scenario") == "in force"
    absolute = sf.col("scenario").startswith("=") & sf.col("quota").isNotNull()
    # The replay also contains the rate as first proposed, but brokers use the bucket.
    by_scenario = (
        replay.where(sf.col("algorithm") != "burst-spreading")
        .groupBy("quota_type", sf.col("shared_by").alias("entity"), "dt", "scenario")
        .agg(
            *(sf.max(name).alias(name) for name in ("quota", "peak_rate", "throttle_ms_max")),
            *(
                sf.sum(name).alias(name)
                for name in ("events", "throttled", "amount", "throttled_amount", "unknown")
            ),
            sf.flatten(sf.collect_list(_moments())).alias("worst"),
        )
    )
    result = sf.struct(
        *("quota", "events", "throttled", "amount", "throttled_amount"),
        *("throttle_ms_max", "worst"),
    )
    by_day = by_scenario.groupBy(*TENANT, "dt").agg(
        sf.array_sort(sf.collect_list(sf.when(absolute, result))).alias("tried"),
        *(sf.max(name).alias(name) for name in ("events", "amount")),
        *(
            sf.max(sf.when(in_force, sf.col(name))).alias(name)
            for name in ("quota", "peak_rate", "unknown")
        ),
    )
    # On a day without known amounts nothing was tried, and nothing would have been throttled.
    used = (sf.col("events") > 0) & (sf.coalesce("amount", sf.lit(1.0)) > 0)
    by_tenant = by_day.groupBy(*TENANT).agg(
        sf.collect_list(sf.when(used, sf.struct("tried"))).alias("days"),
        sf.max_by("quota", "dt").alias("in_force"),
        sf.max("peak_rate").alias("peak_replayed"),
        sf.sum("unknown").alias("unknown"),
        sf.collect_set(sf.unix_date("dt")).alias("replayed_days"),
    )
    quotas = sf.array_distinct(sf.flatten(sf.transform("days", lambda day: day["tried"]["quota"])))
    judged = by_tenant.withColumn("candidates", sf.transform(quotas, _judged))
    failed = sf.filter("candidates", lambda each: ~_passes(each, terms))
    # A larger quota than one that fails passes by chance alone.
    most = sf.coalesce(sf.array_max(failed["quota"]), sf.lit(-1.0))
    enough = sf.filter("candidates", lambda each: each["quota"] > sf.col("too_small"))
    return judged.withColumn("too_small", most).withColumn("least", sf.array_min(enough["quota"]))


def _moments() -> Column:
    """Return a row's longest waits with its broker, the wait first to sort by."""
    return sf.transform(
        sf.coalesce("worst", sf.array()),
        lambda each: sf.struct(each["throttle_ms"].alias("throttle_ms"), each["at"], "broker"),
    )


def _results(quota: Column) -> Column:
    """Return what a quota would have done on each day of a tenant; null if a day tried less."""

    def result(day: Column) -> Column:
        smaller = sf.filter(day["tried"], lambda each: each["quota"] <= quota)
        return sf.try_element_at(smaller, sf.lit(-1))

    return sf.transform("days", result)


def _worst_moments(quota: Column) -> Column:
    """Return the longest waits of a quota on all days and brokers, the longest first."""
    moments = sf.flatten(sf.transform(_results(quota), lambda day: day["worst"]))
    longest = sf.slice(sf.sort_array(moments, asc=False), 1, _MOMENTS)
    return sf.transform(
        longest, lambda each: sf.struct(each["at"], each["broker"], each["throttle_ms"])
    )


def _judged(quota: Column) -> Column:
    """Return what a quota would have done on all days of a tenant; nulls if a day tried less."""
    results = _results(quota)

    def share(of: str, all_of: str) -> Column:
        return sf.try_divide(_sum(results[of]), _sum(results[all_of]))

    return sf.struct(
        quota.alias("quota"),
        share("throttled", "events").alias("share"),
        share("throttled_amount", "amount").alias("amount_share"),
        sf.when(
            sf.forall(results, lambda each: each.isNotNull()),
            sf.array_max(results["throttle_ms_max"]),
        ).alias("wait_ms"),
    )


def _sum(values: Column) -> Column:
    return sf.aggregate(values, sf.lit(0.0), lambda before, value: before + value)


def _passes(judged: Column, terms: Terms) -> Column:
    # The tables of earlier versions have no amounts.
    amount_share = sf.coalesce(judged["amount_share"], judged["share"])
    passes = (
        (judged["share"] <= terms.target)
        & (amount_share <= terms.target)
        & (judged["wait_ms"] <= terms.longest_wait_s * _MS)
    )
    return sf.coalesce(passes, sf.lit(False))


def _quota(terms: Terms) -> Column:
    """Round up to three digits."""
    rate = sf.greatest(*_values(terms).values())
    digit = sf.pow(sf.lit(10.0), sf.floor(sf.log10(rate)) - 2)
    return sf.round(sf.ceil(sf.round(rate / digit, 6)) * digit, 6)


def _values(terms: Terms) -> dict[str, Column]:
    """The values of which the largest is the quota, by their names in the table."""
    floors = sf.create_map(*(sf.lit(each) for pair in terms.floors.items() for each in pair))
    return {
        "percentile": sf.col("percentile_rate") * (1 + terms.margin) * _charged_of_logged(),
        "replay": sf.col("least") * _charged_of_logged(),
        "delay": sf.try_element_at("delay_rates", sf.lit(-1)) * _charged_of_logged(),
        "floor": sf.coalesce(floors[sf.col("quota_type")], sf.lit(0.0)),
    }


def _charged_of_logged() -> Column:
    """How much Kafka charges at most for what the log has, as a factor."""
    return sf.when(sf.col("quota_type") == "request", 1 + _NETWORK).otherwise(1.0)


def _refused(terms: Terms) -> Column:
    entities, prefixes = entities_of_brokers(terms)
    is_brokers = reduce(
        or_,
        (sf.col("entity").startswith(each) for each in prefixes),
        sf.col("entity").isin(entities),
    )
    least = terms.least_coverage
    uncovered = _sentence(
        "the logs cover ",
        sf.floor(sf.col("mean_coverage") * 100),
        f" % of the time, less than {least * 100:.3g} %: leave the log on for longer, since"
        " nobody knows what tenants do in the rest of the time",
    )
    unseen = _sentence(
        sf.round(_unknown() * 100).cast("int"),
        " % of the charges have unknown amounts: throttled fetches (raise the quota for a"
        " while, and log again), share fetches, or fetches of a version that is too new",
    )
    broker, share = _worst(terms)
    unread = (
        f"{share * 100:.3g} % of the requests in the logs of broker {broker} could not be read; the"
        " table quarantine has the reasons"
    )
    untried = sf.size(sf.filter("days", lambda day: sf.size(day["tried"]) == 0))
    unreplayed = _sentence(
        *(untried, " of ", sf.size("days")),
        " days were replayed without candidates; use `pipeline replay` with --candidates",
    )
    missing = sf.size(sf.array_except("used_days", "replayed_days"))
    not_replayed = _sentence(
        *(missing, " of ", sf.size("used_days")),
        " days of usage were not replayed for these clients; other quotas may have grouped them"
        " differently then: use `pipeline replay` for all days again",
    )
    applies_to = _sentence(
        *("a quota for it would also apply to ", sf.col("applies_to")),
        ", whose usage is not part of it: ",
        sf.when(
            sf.col("entity").startswith("user="),
            "give a client-id to the clients without one, or ",
        ).otherwise(""),
        "set quotas for the user and the client-id together",
    )
    return (
        sf.when(
            sf.col("entity").isin(entities) & (sf.col("entity") == f"user={ANONYMOUS}"),
            "brokers and all clients without a login share it; set a quota for the default"
            " client-id, and then each client-id has its own",
        )
        .when(is_brokers, "brokers use it for their own work, which must not be throttled")
        .when(sf.col("is_unclear"), UNCLEAR_NAME)
        .when(sf.col("applies_to").isNotNull(), applies_to)
        .when(sf.lit(share > _MOST_UNREAD), unread)
        .when(sf.col("mean_coverage") < least, uncovered)
        .when(_unknown() > _MOST_UNKNOWN, unseen)
        .when(
            sf.coalesce(sf.size("candidates"), sf.lit(0)) == 0,
            "no candidate was replayed; use `pipeline replay` with --candidates",
        )
        .when(untried > 0, unreplayed)
        .when(missing > 0, not_replayed)
        .when(
            sf.col("least").isNull(),
            f"every candidate throttles more than {terms.target * 100:.3g} %, or for longer than"
            f" {terms.longest_wait_s:g} s; replay larger ones",
        )
    )


def _worst(terms: Terms) -> tuple[int, float]:
    """The broker with the largest share of requests that could not be read, and that share."""
    return max(terms.unread.items(), key=lambda each: each[1], default=(0, 0.0))


def _completed(decided: DataFrame, terms: Terms, capacity: Mapping[str, float]) -> DataFrame:
    keys = sf.create_map(*(sf.lit(each) for pair in KEYS.items() for each in pair))
    whole = Window.partitionBy("quota_type").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    known = [sf.lit(each) for pair in capacity.items() for each in pair]
    has = sf.create_map(*known)[sf.col("quota_type")] if known else sf.lit(None).cast("double")
    replayed = sf.col("quota") / _charged_of_logged()
    values = _values(terms)
    largest = sf.greatest(*values.values())
    decided_by = sf.coalesce(*(sf.when(each == largest, name) for name, each in values.items()))
    judged = (
        decided.withColumn("key", keys[sf.col("quota_type")])
        .withColumn("peak_rate", sf.coalesce("peak_replayed", "peak_seen"))
        .withColumn("judged", _judged(replayed))
        .withColumn("throttled_share", sf.col("judged.share"))
        .withColumn("throttled_amount_share", sf.col("judged.amount_share"))
        .withColumn("throttle_ms_max", sf.col("judged.wait_ms"))
        .withColumn("worst", sf.when(sf.col("quota").isNotNull(), _worst_moments(replayed)))
        .withColumn("longest_delay_s", _longest_delay_s(replayed, terms))
        .withColumn("decided_by", sf.when(sf.col("quota").isNotNull(), decided_by))
        .withColumn("days", sf.size("days"))
        .withColumn("unread_share", sf.lit(_worst(terms)[1]))
        .withColumn("whole_seconds", sf.lit(bool(terms.whole_seconds)))
    )
    caveats = _caveats(terms)
    return (
        judged.withColumn("confidence", _confidence(caveats))
        .withColumn("caveats", _in_words(caveats))
        .withColumn(
            # The current quota stays if the recommendation is refused.
            "share_of_capacity",
            sf.sum(sf.coalesce("quota", "in_force")).over(whole) / has,
        )
    )


def _longest_delay_s(rate: Column, terms: Terms) -> Column:
    """Return the shortest delay that a rate meets on all brokers; null for ids, or without it."""
    delays_s = delays_until(terms.longest_wait_s)
    lowest = [sf.col("delay_rates")[at] for at in range(len(delays_s))]
    met = [
        sf.when(each <= rate, sf.lit(delay_s))
        for each, delay_s in zip(lowest, delays_s, strict=True)
    ]
    # Every quota meets the longest delay, although rounding may have lowered it by a billionth.
    has_rate = lowest[-1].isNotNull() & rate.isNotNull()
    return sf.coalesce(*met, sf.when(has_rate, sf.lit(delays_s[-1])))


def _unknown() -> Column:
    """The share of a tenant's charges with an unknown amount."""
    return sf.coalesce("unknown", sf.lit(0)) / sf.greatest("events", sf.lit(1))


class _Caveat(NamedTuple):
    """What lowers the confidence.

    Attributes:
        low: whether it makes the confidence low.
        medium: whether it makes the confidence at most medium.
        text: what it is, and what changes it.
    """

    low: Column
    medium: Column
    text: Column


def _caveats(terms: Terms) -> list[_Caveat]:
    never = sf.lit(False)

    def needs(name: str, levels: tuple[float, float], *text: Column | str) -> _Caveat:
        value = sf.col(name)
        return _Caveat(value < levels[0], value < levels[1], _sentence(*text))

    def medium(condition: Column, *text: Column | str) -> _Caveat:
        return _Caveat(never, sf.coalesce(condition, never), _sentence(*text))

    is_throttled = sf.col("throttled") > _MOST_THROTTLED * sf.col("events")
    wait_s = sf.format_number(sf.col("throttle_ms_max") / _MS, 1)
    delay_s = sf.format_number("longest_delay_s", 0)
    broker, unread = _worst(terms)
    on_broker = sf.coalesce(
        _sentence(" on broker ", sf.col("least_covered").cast("string")), sf.lit("")
    )
    return [
        _Caveat(
            is_throttled,
            is_throttled,
            _sentence(
                _percent(sf.col("throttled") / sf.col("events")),
                " of the charges were throttled, so the demand may be higher: raise the quota"
                " for a while, and log again",
            ),
        ),
        needs(
            *("coverage", _COVERAGE),
            *("the logs cover ", _percent(sf.col("coverage")), " of the time", on_broker),
            ": 95 % for high",
        ),
        needs(
            *("hours", _HOURS),
            *("there were charges in ", sf.col("hours").cast("string"), " hours: 168 for high"),
        ),
        needs(
            *("events", _CHARGES),
            *("there are ", sf.col("events").cast("string"), " charges: 10,000 for high"),
        ),
        medium(
            sf.col("throttle_ms_max") > _MEDIUM_WAIT_MS,
            *("a request would have waited for ", wait_s, " s: a larger quota avoids that"),
        ),
        medium(
            sf.col("longest_delay_s") > _MEDIUM_WAIT_MS / _MS,
            *("data would have waited for up to ", delay_s, " s: a larger quota avoids that"),
        ),
        medium(
            sf.lit(unread > _MEDIUM_UNREAD),
            f"{unread * 100:.3g} % of the requests in the logs of broker {broker} could not be"
            " read: the table quarantine has the reasons",
        ),
        medium(
            _unknown() > _MEDIUM_UNKNOWN,
            *(_percent(_unknown()), " of the charges have unknown amounts"),
        ),
        medium(
            sf.col("quota_type") == "request",
            "the log lacks the time of the network threads: compare with the brokers' metric"
            " request-time",
        ),
    ]


def _sentence(*parts: Column | str) -> Column:
    """Join texts and columns; null if a column is null."""
    return sf.concat(*map(sf.lit, parts))


def _percent(share: Column) -> Column:
    return _sentence(sf.format_number(share * 100, 1), " %")


def _confidence(caveats: list[_Caveat]) -> Column:
    is_low = reduce(or_, (each.low for each in caveats), sf.col("refused").isNotNull())
    is_medium = reduce(or_, (each.medium for each in caveats))
    return sf.when(is_low, "low").when(is_medium, "medium").otherwise("high")


def _in_words(caveats: list[_Caveat]) -> Column:
    """Return the caveats of a recommendation; null if there are none, or if it is refused."""
    words = sf.concat_ws("; ", *(sf.when(each.medium, each.text) for each in caveats))
    return sf.when(sf.col("refused").isNull() & (words != ""), words)
