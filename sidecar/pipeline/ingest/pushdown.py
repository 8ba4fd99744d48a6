"""Which rows are carried to Spark: the filters of a query that can be applied before that.

Filters of ``api`` (=, IN) and of ``log_ts`` (=, <, <=, >, >=). Spark applies all of them again, so
they let through too much rather than too little: a bound itself is always let through.

Example: ``api = 'FETCH' AND log_ts < '2026-11-20 10:00:01'`` carries one in three rows of a log of
3 seconds that are half FETCHes.

Source: pyspark.sql.datasource.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are carried to Spark.

    Attributes:
        apis: by name; None: all.
        since_us: log_ts at least this, microseconds since 1970; None: from the first.
        until_us: log_ts at most this; None: to the last.
    """

    apis: frozenset[str] | None = None
    since_us: int | None = None
    until_us: int | None = None

    def with_filter(self, one: Filter) -> "Wanted":
        """These, and only those that a filter of Spark's lets through; the same if it can't say."""
        match one:
            case EqualTo(("api",), str() as name):
                return self._of({name})
            case In(("api",), names):
                return self._of({name for name in names if isinstance(name, str)})
            case EqualTo(("log_ts",), datetime() as when):
                return self._within(_us(when), _us(when))
            case GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
                return self._compared(one)
        return self

    @property
    def needed(self) -> frozenset[str]:
        """The columns that decide which."""
        timed = self.since_us is not None or self.until_us is not None
        return frozenset(["log_ts"] * timed + ["api"] * (self.apis is not None))

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Those of a batch that has the columns that are needed."""
        keep = None
        if self.apis is not None:
            keep = pc.is_in(batch["api"], pa.array(sorted(self.apis), pa.string()))
        for bound_us, compare in (
            (self.since_us, pc.greater_equal),
            (self.until_us, pc.less_equal),
        ):
            if bound_us is not None:
                bound = pa.scalar(bound_us, pa.int64()).cast(batch["log_ts"].type)
                within = compare(batch["log_ts"], bound)
                keep = within if keep is None else pc.and_(keep, within)
        return batch if keep is None else batch.filter(keep)

    def _of(self, names: set[str]) -> "Wanted":
        return replace(self, apis=frozenset(names & self.apis if self.apis is not None else names))

    def _compared(
        self, one: GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual
    ) -> "Wanted":
        if one.attribute != ("log_ts",) or not isinstance(one.value, datetime):
            return self
        if isinstance(one, GreaterThan | GreaterThanOrEqual):
            return self._within(_us(one.value), None)
        return self._within(None, _us(one.value))

    def _within(self, since_us: int | None, until_us: int | None) -> "Wanted":
        since = [us for us in (self.since_us, since_us) if us is not None]
        until = [us for us in (self.until_us, until_us) if us is not None]
        return replace(self, since_us=max(since, default=None), until_us=min(until, default=None))


def _us(when: datetime) -> int:
    """Microseconds since 1970; a time without a zone is of the session's, which is UTC."""
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    since = when - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
