"""The highest rate of a tenant on a broker, from the usage of each second.

Example: with 3,000 bytes in each of two consecutive seconds and a window of 10 s, the peak is 600.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.packed import Usage, unpacked
from usage_pipeline.tables.arrow import schema_of

PEAKS: Final = "quota_type string, shared_by string, peak double"
"""The rows of ``peaks_of``."""
_SCHEMA: Final = schema_of(PEAKS)


def peaks_of(table: pa.Table) -> pa.Table:
    """Return each tenant's peak on each broker, if it is above 0, from rows of packed.PACKED."""
    peaks = ((each.quota_type, each.name, peak(each)) for each in unpacked(table))
    rows = [each for each in peaks if each[2] > 0]
    return pa.table([list(each) for each in zip(*rows, strict=True)] or [[]] * 3, schema=_SCHEMA)


def peak(usage: Usage) -> float:
    """Return the highest usage of a window that ends with a second, in the quota's unit."""
    window_s, units = usage.window
    until = np.concatenate(([0.0], np.cumsum(usage.amount)))
    before = np.searchsorted(usage.second, usage.second - window_s)
    return float((until[1:] - until[before]).max()) / units
