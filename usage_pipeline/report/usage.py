"""Usage by tenant: a plot of each quota type over time, and a table.

Rates are totals of all brokers, over time buckets that suit the span. The busiest tenants have a
line each, and the others share one line.

Example: 5 of 40 tenants have a line, and 35 share the line "35 others".
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from usage_pipeline.report import figures
from usage_pipeline.report.grid import Cell, named, table
from usage_pipeline.report.left_out import LeftOut
from usage_pipeline.report.page import figure, paragraph, section
from usage_pipeline.report.plots import Axis, Plot, Series, Tick, round_ticks, svg
from usage_pipeline.report.rows import Row, count, seconds, text, value
from usage_pipeline.report.times import bucket_s, time_axis
from usage_pipeline.tables.schemas import QUOTA_TYPES

_LINES: Final = 5


def usage_section(rows: Sequence[Row]) -> str:
    """Return the section from rows of GOLD_USAGE_1S with windows of any length."""
    if not rows:
        return section(
            "Usage", paragraph("No usage is known: there are no request logs in the tables.")
        )
    moments = [seconds(row["window_start"]) for row in rows]
    first, last = min(moments), max(moments) + 1
    types = [kind for kind in QUOTA_TYPES if any(row["quota_type"] == kind for row in rows)]
    plots = [
        figure(
            f"{figures.kind(kind)}, all brokers together",
            _plot(kind, [row for row in rows if row["quota_type"] == kind], first, last),
        )
        for kind in types
    ]
    return section("Usage", *plots, _table(rows, last - first))


def _plot(quota_type: str, rows: Sequence[Row], first: float, last: float) -> str:
    step = bucket_s(last - first)
    begin = first // step * step
    sums: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        bucket = seconds(row["window_start"]) // step * step
        sums[tenant(row)][bucket] += value(row, "amount") or 0.0
    totals = {name: sum(buckets.values()) for name, buckets in sums.items()}
    folded = {tenant(row): count for row in rows if (count := others_in(row))}
    order = sorted(totals, key=lambda name: (name in folded, -totals[name], name))
    shown = {name: sums[name] for name in order[:_LINES] if name not in folded}
    if others := order[len(shown) :]:
        together: dict[float, float] = defaultdict(float)
        for name in others:
            for bucket, amount in sums[name].items():
                together[bucket] += amount
        several = sum(folded.get(name, 1) for name in others)
        shown["1 other" if several == 1 else f"{several:,} others"] = together
    buckets = [begin + at * step for at in range(int((last - begin - 1e-9) // step) + 1)]
    per = _per(quota_type, step)
    series = [
        Series(name, [(bucket, amounts.get(bucket, 0.0) / per) for bucket in buckets])
        for name, amounts in shown.items()
    ]
    most = max((y for each in series for _, y in each.points), default=0.0)
    title = f"{figures.kind(quota_type)} by tenant"
    return svg(Plot(title, time_axis(begin, last), rate_axis(most, quota_type), series))


def rate_axis(most: float, quota_type: str) -> Axis:
    """Return an axis from 0 to the highest rate, in the unit of the quota."""
    high = most * 1.05 or 1.0
    ticks = tuple(Tick(at, figures.short_rate(at, quota_type)) for at in round_ticks(0.0, high))
    return Axis(0.0, high, ticks)


class Sums(NamedTuple):
    """A tenant's usage of a quota type: the amount, requests, throttled requests and their ms."""

    amount: float
    events: float
    throttled: float
    throttle_ms: float


def sums(rows: Iterable[Row]) -> dict[tuple[str, str], Sums]:
    """Sum rows of GOLD_USAGE_1S by tenant and quota type."""
    totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * len(Sums._fields))
    for row in rows:
        of_tenant = totals[tenant(row), text(row, "quota_type")]
        for at, name in enumerate(Sums._fields):
            of_tenant[at] += value(row, name) or 0.0
    return {key: Sums(*each) for key, each in totals.items()}


def _table(rows: Sequence[Row], span_s: float) -> str:
    short = {(tenant(row), text(row, "quota_type")) for row in rows if row["lower_bound"]}
    ordered = sorted(
        sums(rows).items(), key=lambda each: (QUOTA_TYPES.index(each[0][1]), -each[1].amount)
    )
    body = [
        [
            named(name),
            named(figures.kind(quota_type)),
            Cell(
                ("at least " if (name, quota_type) in short else "")
                + figures.amount(amount, quota_type),
                amount,
            ),
            Cell(figures.rate(amount / _per(quota_type, span_s), quota_type), amount / span_s),
            Cell(f"{events:,.0f}", events),
            Cell(figures.share(throttled / events if events else None), throttled / max(1, events)),
            Cell(figures.duration(waited), waited),
        ]
        for (name, quota_type), (amount, events, throttled, waited) in ordered
    ]
    headings = ("Tenant", "Quota", "Used", "Mean rate", "Requests", "Throttled", "Total wait")
    left_out = usage_left_out(rows)
    return table(left_out.extent if left_out.left else "Tenants", headings, body)


def usage_left_out(rows: Iterable[Row]) -> LeftOut:
    """Count the tenants of each quota type without a name, from rows of GOLD_USAGE_1S."""
    named, others = _of_types(rows)
    return LeftOut(
        "Usage",
        sum(map(len, named.values())),
        sum(others.values()),
        "tenants",
        "those that use or wait most",
        "gold_usage_1s",
    )


def span_s(rows: Sequence[Row]) -> float:
    """Return the seconds from the first window to the end of the last, which takes a second."""
    moments = [seconds(row["window_start"]) for row in rows]
    return max(moments) + 1 - min(moments)


def _tenants(rows: Iterable[Row]) -> int:
    """Return the number of tenants; if rows combine tenants, that of the type with the most."""
    named, others = _of_types(rows)
    every = set[str]().union(*named.values())
    of_types = [len(named[kind]) + others[kind] for kind in {*named, *others}]
    return max([len(every), *of_types])


def _of_types(rows: Iterable[Row]) -> tuple[dict[str, set[str]], dict[str, int]]:
    """Return each quota type's named tenants, and its number of other tenants."""
    named: dict[str, set[str]] = defaultdict(set)
    others: dict[str, int] = defaultdict(int)
    for row in rows:
        quota_type = text(row, "quota_type")
        if several := others_in(row):
            others[quota_type] = several
        else:
            named[quota_type].add(tenant(row))
    return named, others


def _per(quota_type: str, span_s: float) -> float:
    """Return seconds, or hours for producer ids, because their quota's window is an hour."""
    return span_s / 3600 if quota_type == "producer_ids" else span_s


def tenant(row: Row) -> str:
    """Return the user and client-id of a row, or how many tenants the row combines."""
    if others := others_in(row):
        return f"{others:,} others"
    user, client_id = text(row, "user"), text(row, "client_id")
    return " / ".join(part for part in (user, client_id) if part) or "(nobody)"


def others_in(row: Row) -> int:
    """Return how many tenants a row combines; 0 for a row of one tenant."""
    return int(value(row, "others") or 0) if "others" in row else 0


def summary(rows: Sequence[Row]) -> dict[str, str]:
    """Return a few figures: the time that the logs cover, and the throttled share."""
    if not rows:
        return {}
    starts = [seconds(row["window_start"]) for row in rows]
    first, last = (datetime.fromtimestamp(at, UTC) for at in (min(starts), max(starts)))
    # Every charged request is charged for time, except for exempt requests.
    requests = [row for row in rows if row["quota_type"] == "request"]
    events, throttled = count(requests, "events"), count(requests, "throttled")
    return {
        "From": figures.moment(first) + " UTC",
        "To": figures.moment(last) + " UTC",
        "Brokers": f"{len({row['broker'] for row in rows}):,}",
        "Tenants": f"{_tenants(rows):,}",
        "Requests": f"{events:,.0f}",
        "Throttled": figures.share(throttled / events if events else None),
    }
