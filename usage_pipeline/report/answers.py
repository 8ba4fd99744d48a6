"""The first screen: who uses most, who is throttled, which disk is full, and what to set first.

Each question has a chart with a few bars. The question of what to set first also has a table of ten
rows. Everything else is on later parts of the page. Quotas to set are in this order: tenants
without a quota before tenants with another quota, then larger quotas before the smallest one, then
by the share of the peaks of all tenants of the quota type. Recommendations with little evidence are
left out, and so are quotas within a twentieth of the configured ones.

Example: bob writes 62 % of all bytes and has no quota. He is the longest bar, and the first row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from usage_pipeline.report import figures
from usage_pipeline.report.disks import has_no_forecast, newest_forecasts
from usage_pipeline.report.grid import Cell, named, table
from usage_pipeline.report.lengths import Bar, lengths
from usage_pipeline.report.page import card, cards, paragraph
from usage_pipeline.report.recommendation import (
    by_quota,
    cell_in_force,
    cell_of_tenants,
    newest_of_tenants,
)
from usage_pipeline.report.rows import Row, count, text, value, values
from usage_pipeline.report.usage import others_in, span_s, sums, tenant
from usage_pipeline.tables.schemas import QUOTA_TYPES

_MOST_USED: Final = ("produce", "fetch", "request")
_OF_TYPE: Final = 3
_BARS: Final = 4
"""Bars in the other charts; with more or longer bars, the first screen exceeds a laptop's."""
_ROWS: Final = 10
_ALIKE: Final = 0.05


@dataclass(frozen=True, slots=True)
class _ToSet:
    """A quota to set.

    Attributes:
        rows: the row of one tenant, or of several tenants with the same quota.
        share: their part of the peaks of all tenants of this quota type.
        has_quota: whether one of the tenants has another quota now.
    """

    rows: Sequence[Row]
    share: float
    has_quota: bool

    @property
    def quota_type(self) -> str:
        """Return the quota type, which is the same for all rows."""
        return text(self.rows[0], "quota_type")

    @property
    def tenants(self) -> Cell:
        """Return the cell that names the tenants."""
        return cell_of_tenants(self.rows)

    @property
    def quota(self) -> str:
        """Return the recommended quota, with its unit."""
        return figures.rate(value(self.rows[0], "quota"), self.quota_type)


def answers(tables: Mapping[str, Sequence[Row]]) -> str:
    """Return the first screen as HTML; ``report`` describes the tables."""
    usage = tables.get("gold_usage_1s", ())
    recommended = newest_of_tenants(tables.get("gold_recommendation", ()))
    first = _first(recommended)
    pictures = [
        card("Who uses most?", *_most(usage)),
        card("Who was throttled, and who would be?", *_throttled(usage, recommended)),
        card("Which disk is full, and when?", *_disks(tables.get("gold_disk_forecast", ()))),
        card("What to set first?", *_what_first(first, recommended)),
    ]
    return cards(pictures) + _table(first)


def _most(rows: Sequence[Row]) -> list[str]:
    bars = []
    usage = sums(rows)
    together = _together(rows)
    for quota_type in _MOST_USED:
        amounts = {name: each.amount for (name, kind), each in usage.items() if kind == quota_type}
        total = sum(amounts.values())
        if not total:
            continue
        seconds = span_s(rows)
        ordered = sorted(
            ((name, amount) for name, amount in amounts.items() if name not in together),
            key=lambda each: (-each[1], each[0]),
        )
        bars += [
            Bar(
                name,
                f"{figures.rate(amount / seconds, quota_type)},"
                f" {figures.share(amount / total)} of all",
                amount / total,
                figures.kind(quota_type),
            )
            for name, amount in ordered[:_OF_TYPE]
        ]
    return [lengths(bars)] if bars else [paragraph("No usage is known.")]


def _together(rows: Sequence[Row]) -> set[str]:
    """Return the names of rows that combine many tenants, none of which is among the first."""
    return {tenant(row) for row in rows if others_in(row)}


def _throttled(rows: Sequence[Row], recommended: Sequence[Row]) -> list[str]:
    # Every charged request is charged for time, except for exempt requests.
    together = _together(rows)
    requests = [
        (name, each)
        for (name, kind), each in sums(rows).items()
        if kind == "request" and name not in together
    ]
    waited = sorted(requests, key=lambda each: (-each[1].throttle_ms, each[0]))[:_BARS]
    was = [
        (name, each.throttled / each.events, each.throttle_ms)
        for name, each in waited
        if each.throttled
    ]
    most = max((share for _, share, _ in was), default=1.0)
    bars = [
        Bar(
            name,
            f"{figures.share(share)} of its requests, {figures.duration(waits)} in total",
            share / most,
            "Was",
        )
        for name, share, waits in was
    ]
    would = [
        (share, row)
        for row in recommended
        if (share := value(row, "throttled_share")) and value(row, "quota") is not None
    ]
    would.sort(key=lambda each: (-each[0], text(each[1], "entity")))
    bars += [
        Bar(
            f"{text(row, 'entity')}, {figures.kind(text(row, 'quota_type')).lower()}",
            f"at most {figures.share(share)} of its charges",
            share / would[0][0],
            "Would be, with the recommended quotas",
        )
        for share, row in would[:_BARS]
    ]
    if not rows and not recommended:
        return [paragraph("No usage is known.")]
    return [*([] if was else [paragraph("Nobody was throttled.")]), lengths(bars)]


def _disks(forecasts: Sequence[Row]) -> list[str]:
    newest = newest_forecasts(forecasts)
    if not newest:
        return [paragraph("No forecast was made: there is no volume history.")]
    urgent = [(hours, row) for row in newest if (hours := value(row, "hours_to_limit")) is not None]
    urgent.sort(key=lambda each: each[0])
    shown = urgent[:_BARS]
    ends = values((row for _, row in shown), "hours_high")
    longest = max([*ends, *(hours for hours, _ in shown), 1.0])
    bars = []
    for hours, row in shown:
        low, high = value(row, "hours_low"), value(row, "hours_high")
        low = hours if low is None else low
        until = "or never" if high is None else f"to {figures.hours(high)}"
        span = f"in {figures.hours(hours)} ({figures.hours(low)} {until})"
        bars.append(
            Bar(
                f"broker {text(row, 'broker')} {text(row, 'log_dir')}",
                "now" if high == 0.0 else span,
                1.0 if high is None else high / longest,
                "At its limit",
                low / longest,
                hours / longest,
            )
        )
    unknown = sum(map(has_no_forecast, newest))
    left = len(newest) - len(shown) - unknown
    more = " more: later, or" if shown else ":"
    return [
        lengths(bars),
        *([paragraph(f"{_volumes(left)}{more} not expected to reach the limit.")] if left else []),
        *(
            [paragraph(f"{_volumes(unknown)}: no forecast; the table of disks has the reasons.")]
            if unknown
            else []
        ),
    ]


def _volumes(number: int) -> str:
    return "1 volume" if number == 1 else f"{number:,} volumes"


def _first(recommended: Sequence[Row]) -> list[_ToSet]:
    """Return the quotas to set, in order; tenants with the smallest quota of a type are grouped."""
    quotas = []
    for quota_type in QUOTA_TYPES:
        mine = [row for row in recommended if row["quota_type"] == quota_type]
        peaks = count(mine, "peak_rate")
        for rows in by_quota(quota_type, [row for row in mine if _is_to_set(row)]):
            share = count(rows, "peak_rate") / peaks if peaks else 0.0
            quotas.append(_ToSet(rows, share, bool(values(rows, "in_force"))))
    return sorted(quotas, key=lambda each: (each.has_quota, len(each.rows) > 1, -each.share))


def _is_to_set(row: Row) -> bool:
    quota, in_force = value(row, "quota"), value(row, "in_force")
    if quota is None or text(row, "confidence") == "low":
        return False
    return in_force is None or abs(quota - in_force) > _ALIKE * in_force


def _what_first(first: Sequence[_ToSet], recommended: Sequence[Row]) -> list[str]:
    if not recommended:
        return [paragraph("No quota was recommended.")]
    if not first:
        return [
            paragraph(
                "Nothing: the configured quotas match the recommendations, or there is too little"
                " evidence."
            )
        ]
    by_type = sorted(first[:_BARS], key=lambda each: QUOTA_TYPES.index(each.quota_type))
    return [
        lengths(
            [
                Bar(
                    f"{each.tenants.text}: {each.quota}",
                    f"{figures.share(each.share)} of all peaks",
                    each.share,
                    figures.kind(each.quota_type),
                )
                for each in by_type
            ]
        )
    ]


def _table(first: Sequence[_ToSet]) -> str:
    if not first:
        return ""
    headings = ("Tenant", "Quota", "Configured", "Set", "Throttled at most", "Share of peaks")
    body = [_row(each) for each in first[:_ROWS]]
    left = len(first) - len(body)
    more = f"; {left:,} more come after" if left else ""
    return table(f"Set first: tenants without a quota, then the largest{more}", headings, body)


def _row(to_set: _ToSet) -> list[Cell]:
    rows = to_set.rows
    shares = values(rows, "throttled_share") + values(rows, "throttled_amount_share")
    throttled = max(shares, default=0.0)
    return [
        to_set.tenants,
        named(figures.kind(to_set.quota_type)),
        cell_in_force(rows, "none"),
        Cell(to_set.quota, value(rows[0], "quota")),
        Cell(figures.share(throttled), throttled),
        Cell(figures.share(to_set.share), to_set.share),
    ]
