"""The effect of quotas: throttling by candidate, and with the configured quotas.

There is a plot for each tenant. Its x axis is the quota on a logarithmic scale, and its y axis the
share of the tenant's charges that would have been throttled. Marks show the configured and the
recommended quota.

Example: alice's line falls from 40 % at 1 MB/s to 0.6 % at 4 MB/s, which is marked "recommended".
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from usage_pipeline.report import figures
from usage_pipeline.report.grid import Cell, named, table
from usage_pipeline.report.left_out import LeftOut
from usage_pipeline.report.page import few, figure, paragraph, section
from usage_pipeline.report.plots import Axis, Mark, Plot, Series, Tick, round_ticks, svg
from usage_pipeline.report.rows import Row, text, value
from usage_pipeline.report.usage import others_in
from usage_pipeline.tables.schemas import QUOTA_TYPES

_MOST_PLOTS: Final = 12
_MOST_ROWS: Final = 500

_Tenant = tuple[str, str]


def replay_section(rows: Sequence[Row], recommended: Sequence[Row]) -> str:
    """Return the section from rows of GOLD_REPLAY, with marks from GOLD_RECOMMENDATION."""
    if not rows:
        return section("What quotas would do", paragraph("Nothing was replayed."))
    recommendations = {(text(row, "quota_type"), text(row, "entity")): row for row in recommended}
    swept = _swept(rows)
    order = sorted(swept, key=lambda tenant: -max(events for events, _ in swept[tenant].values()))
    chosen = sorted(order[:_MOST_PLOTS], key=lambda each: (QUOTA_TYPES.index(each[0]), each[1]))
    plots = [
        figure(
            f"{tenant[1]}: {figures.kind(tenant[0]).lower()}",
            _plot(tenant, swept[tenant], recommendations.get(tenant)),
        )
        for tenant in chosen
    ]
    of_plots, of_quotas = replay_left_out(rows)
    more = paragraph(of_plots.sentence) if of_plots.left else ""
    intro = paragraph("The share of charges that would have been throttled, by the quota.")
    return section("What quotas would do", intro, few(plots), more, _in_force(rows, of_quotas))


def replay_left_out(rows: Sequence[Row]) -> tuple[LeftOut, LeftOut]:
    """Count what rows of GOLD_REPLAY have without a plot or a table row.

    The first result is about the tenants of each quota type, and the second about configured
    quotas. Rows that stand for ``others`` have only a scenario.
    """
    swept, in_force = len(_swept(rows)), len(_of_quotas_in_force(rows))
    others = {
        scenario: sum(others_in(row) for row in rows if row["scenario"] == scenario)
        for scenario in ("=", "in force")
    }
    plots, shown = min(swept, _MOST_PLOTS), min(in_force, _MOST_ROWS)
    return (
        LeftOut(
            "Plots of what quotas would do",
            plots,
            swept - plots + others["="],
            "tenants",
            "the busiest",
            "gold_replay",
        ),
        LeftOut(
            "Configured quotas, replayed",
            shown,
            in_force - shown + others["in force"],
            "rows",
            "those with the longest waits",
            "gold_replay",
        ),
    )


def _swept(rows: Sequence[Row]) -> dict[_Tenant, dict[float, tuple[float, float]]]:
    """Return each tenant's charges and throttled charges by quota, over all brokers and days."""
    sweeps: dict[_Tenant, dict[float, tuple[float, float]]] = defaultdict(dict)
    for row in rows:
        quota = value(row, "quota")
        if quota is None or quota <= 0 or not text(row, "scenario").startswith("="):
            continue
        of_tenant = sweeps[text(row, "quota_type"), text(row, "shared_by")]
        events, throttled = of_tenant.get(quota, (0.0, 0.0))
        of_tenant[quota] = (
            events + (value(row, "events") or 0.0),
            throttled + (value(row, "throttled") or 0.0),
        )
    return sweeps


def _plot(
    tenant: _Tenant, sweep: Mapping[float, tuple[float, float]], recommended: Row | None
) -> str:
    quota_type, name = tenant
    marks = [
        Mark(label, at)
        for label, column in (("configured", "in_force"), ("recommended", "quota"))
        if recommended is not None and (at := value(recommended, column)) is not None and at > 0
    ]
    points = [
        (quota, throttled / max(1.0, events))
        for quota, (events, throttled) in sorted(sweep.items())
    ]
    labels = [
        f"{figures.rate(quota, quota_type)}: {figures.share(share)} throttled"
        for quota, share in points
    ]
    ends = [*sweep, *(mark.at for mark in marks)]
    x = _quota_axis(min(ends), max(ends), quota_type)
    return svg(
        Plot(
            f"Share throttled of {name} by quota",
            x,
            _share_axis(max(share for _, share in points)),
            [Series(name, points, labels)],
            uprights=marks,
        )
    )


def _quota_axis(low: float, high: float, quota_type: str) -> Axis:
    if high <= low:
        low, high = low / 2, high * 2
    steps = 4
    factor = (high / low) ** (1 / steps)
    ticks = [float(f"{low * factor**step:.2g}") for step in range(steps + 1)]
    shown = sorted({tick for tick in ticks if low <= tick <= high})
    return Axis(
        low, high, tuple(Tick(at, figures.short_rate(at, quota_type)) for at in shown), is_log=True
    )


def _share_axis(most: float) -> Axis:
    high = max(most * 1.05, 0.001)
    ticks = tuple(Tick(at, figures.share(at)) for at in round_ticks(0.0, high))
    return Axis(0.0, high, ticks)


def _in_force(rows: Sequence[Row], left_out: LeftOut) -> str:
    in_force = _of_quotas_in_force(rows)
    in_force.sort(key=lambda row: -(value(row, "throttle_ms_total") or 0.0))
    body = [_row(row) for row in in_force[:_MOST_ROWS]]
    headings = (
        *("Day", "Broker", "Shared by", "Quota", "Limit", "Charges", "Throttled"),
        *("Total wait", "Longest wait", "Peak rate", "Near (80 %)", "Over", "Unknown"),
    )
    more = f": {left_out.extent}" if left_out.left else ""
    return table(f"The configured quotas, replayed{more}", headings, body)


def _of_quotas_in_force(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["scenario"] == "in force" and row["quota"] is not None]


def _row(row: Row) -> list[Cell]:
    quota_type = text(row, "quota_type")
    events = value(row, "events") or 0.0
    counts = {name: value(row, name) or 0.0 for name in ("throttled", "near", "over", "unknown")}
    total, longest = value(row, "throttle_ms_total"), value(row, "throttle_ms_max")
    quota, peak = value(row, "quota"), value(row, "peak_rate")
    return [
        named(text(row, "dt")),
        Cell(text(row, "broker"), value(row, "broker")),
        named(text(row, "shared_by")),
        named(figures.kind(quota_type)),
        Cell(figures.rate(quota, quota_type), quota),
        Cell(f"{events:,.0f}", events),
        Cell(figures.share(counts["throttled"] / events if events else None), counts["throttled"]),
        Cell(figures.duration(total), total),
        Cell(figures.duration(longest), longest),
        Cell(figures.rate(peak, quota_type), peak),
        *(Cell(f"{counts[name]:,.0f}", counts[name]) for name in ("near", "over", "unknown")),
    ]
