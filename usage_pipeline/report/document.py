"""Combines the sections into the page."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Final

from usage_pipeline.report import figures
from usage_pipeline.report.answers import answers
from usage_pipeline.report.costs import cost_section
from usage_pipeline.report.disks import disk_section
from usage_pipeline.report.grid import Cell, named, table
from usage_pipeline.report.left_out import LeftOut, left_out_note
from usage_pipeline.report.page import page, paragraph, searched, section
from usage_pipeline.report.recommendation import (
    recommendation_section,
    recommendations_left_out,
)
from usage_pipeline.report.replay import replay_left_out, replay_section
from usage_pipeline.report.rows import Row, text, value
from usage_pipeline.report.usage import summary, usage_left_out, usage_section

_MOST_KINDS: Final = 100


def report(tables: Mapping[str, Sequence[Row]], now: datetime, cluster: str | None = None) -> str:
    """Return the page of a cluster.

    Args:
        tables: rows by the name of their table, with the columns of ``tables.schemas``, as
            ``reading`` returns them. Windows of gold_usage_1s may be longer than a second. Rows
            that combine many tenants have their number in ``others``, and so have rows of
            gold_replay that stand for omitted rows. Rows of quarantine have a number of ``lines``.
        now: when the page is made, with a time zone.
        cluster: the cluster's name; None without one.

    Raises:
        ReportError: a column has an invalid value.
    """
    recommended = tables.get("gold_recommendation", ())
    usage, replayed = tables.get("gold_usage_1s", ()), tables.get("gold_replay", ())
    unread = _kinds(tables.get("quarantine", ()))
    details = [
        recommendation_section(recommended),
        usage_section(usage),
        replay_section(replayed, recommended),
        disk_section(tables.get("gold_disk_forecast", ()), tables.get("silver_volume", ())),
        cost_section(tables.get("gold_cost", ())),
        _quarantine(unread),
    ]
    left_out = [
        recommendations_left_out(recommended),
        usage_left_out(usage),
        *replay_left_out(replayed),
        _kinds_left_out(unread),
    ]
    parts = [_head(usage), answers(tables), searched(details, left_out_note(left_out))]
    return page(_title(cluster), f"Made {figures.moment(now)} UTC.", parts)


def contents(pages: Mapping[str, str], now: datetime) -> str:
    """Return the page that links to the clusters' pages.

    Args:
        pages: the path of each cluster's page, relative to this one.
        now: when the page is made, with a time zone.
    """
    items = "".join(
        f'<li><a href="{escape(path)}">{escape(cluster)}</a></li>'
        for cluster, path in pages.items()
    )
    return page(_title(None), f"Made {figures.moment(now)} UTC.", [f"<ul>{items}</ul>"])


def _title(cluster: str | None) -> str:
    return "Kafka quotas and disks" + ("" if cluster is None else f" of {cluster}")


def _head(usage: Sequence[Row]) -> str:
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}</dd></div>"
        for name, figure in summary(usage).items()
    )
    return f"<dl>{items}</dl>" if items else ""


def _kinds(rows: Sequence[Row]) -> dict[tuple[str, str, str], int]:
    """Return the number of lines by file, kind and reason."""
    kinds: dict[tuple[str, str, str], int] = {}
    for row in rows:
        key = (text(row, "src_file"), text(row, "kind"), text(row, "reason"))
        kinds[key] = kinds.get(key, 0) + int(value(row, "lines") or 0)
    return kinds


def _kinds_left_out(kinds: Mapping[tuple[str, str, str], int]) -> LeftOut:
    shown = min(len(kinds), _MOST_KINDS)
    which = "those with the most lines"
    left = len(kinds) - shown
    return LeftOut("Lines that were not read", shown, left, "rows", which, "quarantine")


def _quarantine(kinds: Mapping[tuple[str, str, str], int]) -> str:
    if not kinds:
        return section("Lines that were not read", paragraph("None."))
    body = [
        [*map(named, key), Cell(f"{count:,}", count)]
        for key, count in sorted(kinds.items(), key=lambda each: -each[1])[:_MOST_KINDS]
    ]
    caption = f"{sum(kinds.values()):,} lines, by file and reason"
    return section(
        "Lines that were not read", table(caption, ("File", "Kind", "Reason", "Lines"), body)
    )
