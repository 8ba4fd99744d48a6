"""The days that a run drops from the tables (``--keep``).

Days count back from the cluster's newest day, or from the run's own day if that is earlier, so that
neither old logs nor a line with a time in the future empties the tables. Gold tables keep four
times as many days, because they are small. A run drops no day that it has just written, and nothing
from a stream's tables, from silver_change (the size of a topic may have been logged years ago) or
from gold_cost, because days without usage can't be charged again.

The run commits without these days. Their files are replaced files, which upkeep removes like other
ones: readers that began before keep them for ``--retained-days``.

Example: with 90 days and data up to 20 November 2026, the first day of silver_request is 22 August
2026, and that of gold_usage_1s is 25 November 2025.
"""

from datetime import date
from typing import Final

from usage_pipeline.batch.run import Run
from usage_pipeline.tables.schemas import GOLD_COST, SILVER_CHANGE, TABLES, Table

_GOLD_TIMES: Final = 4


def first_day(run: Run, times: int = 1) -> date | None:
    """Return the first day that is kept; None for all days.

    Args:
        run: the run of a cluster.
        times: how many times as many days are kept: 1 for silver tables.
    """
    newest = [days[-1] for table in TABLES if (days := run.store.days_of(table))]
    if run.options.keep is None or not newest:
        return None
    return min(run.options.now.date(), max(newest)) - times * run.options.keep


def old_days(run: Run) -> dict[Table, list[date]]:
    """Return the days that a run drops from each table."""
    silver, gold = first_day(run), first_day(run, _GOLD_TIMES)
    if silver is None or gold is None:
        return {}
    old: dict[Table, list[date]] = {}
    kept = {GOLD_COST.name, SILVER_CHANGE.name, *run.store.before.streamed}
    for table in TABLES:
        first = gold if table.name.startswith("gold_") else silver
        written = run.store.written_days(table)
        days = [day for day in run.store.days_of(table) if day < first and day not in written]
        if days and table.name not in kept:
            old[table] = days
    return old
