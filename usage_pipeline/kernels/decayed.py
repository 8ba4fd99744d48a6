"""The decayed percentile of a tenant's rates on a broker, over steps of time.

Each rate has an integer weight, which halves with every half-life before the end. A rate with
weight n counts like n equal rates. Between two rates, the percentile is interpolated.

Example: a rate of 10 has weight 1 and a rate of 20 has weight 3. The median is 20. The tenth
percentile is at 0.3 of the way from the first to the second of the four rates, which is 13.

Source: Spark's ``percentile(rate, share, frequency)``, with the same result.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.delay import rates_within
from usage_pipeline.kernels.packed import Usage, unpacked
from usage_pipeline.kernels.values import Doubles, Longs
from usage_pipeline.tables.arrow import schema_of

RATES: Final = (
    "quota_type string, entity string, broker int, percentile_rate double, peak_seen double,"
    " delay_rates array<double>, events bigint, throttled bigint, hours array<int>, newest bigint"
)
"""The rows of ``Decayed``; hours since 1970."""

_HOUR_S: Final = 3600
_WEIGHT: Final = 1_000_000
_IDS: Final = "producer_ids"
_SCHEMA: Final = schema_of(RATES)


@dataclass(frozen=True, slots=True)
class Decayed:
    """Rates of tenants.

    Attributes:
        share: the percentile, 0 to 1.
        half_life_s: the age at which a rate counts half.
        delays_s: the delays of which the lowest rates are taken (``delay``), seconds, ascending.
    """

    share: float
    half_life_s: float
    delays_s: tuple[float, ...]

    def rows(self, table: pa.Table) -> pa.Table:
        """Return rows of ``RATES``: one for each quota type, name and broker.

        Args:
            table: the input of ``packed.unpacked``, with the column ``end``, the second from which
                ages are counted, the same in all rows.
        """
        end = int(table.column("end")[0].as_py())
        rows = [self._row(usage, end) for usage in unpacked(table)]
        columns = [list(each) for each in zip(*rows, strict=True)] or [[] for _ in _SCHEMA]
        return pa.table(columns, schema=_SCHEMA)

    def _row(self, usage: Usage, end: int) -> tuple[object, ...]:
        window_s, units = usage.window
        step, amount = usage.steps(window_s)
        rate = amount / units
        return (
            *(usage.quota_type, usage.name, usage.broker),
            percentile(rate, self._weights(end - step), self.share),
            float(rate.max()),
            # The quota of ids is per hour, so no delay of seconds counts.
            None
            if usage.quota_type == _IDS
            else rates_within(usage.second, usage.amount, self.delays_s),
            int(usage.events.sum()),
            int(usage.throttled.sum()),
            np.unique(usage.second // _HOUR_S),
            int(usage.second[-1]),
        )

    def _weights(self, age_s: Longs) -> Longs:
        weight = _WEIGHT * np.power(2.0, -age_s / self.half_life_s)
        return np.maximum(1, np.floor(weight + 0.5).astype(np.int64))


def percentile(values: Doubles, weights: Longs, share: float) -> float:
    """Return the value at a share of the way from the lowest to the highest.

    Args:
        values: at least one value.
        weights: how often each value counts, above 0.
        share: 0 to 1.
    """
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    until = np.cumsum(weights[order])
    position = float(until[-1] - 1) * share
    below, above = np.floor(position), np.ceil(position)
    low, high = (float(ranked[np.searchsorted(until, each + 1)]) for each in (below, above))
    if low == high:
        return low
    return float((above - position) * low + (position - below) * high)
