"""The times of charges in a log whose layout has whole seconds, such as Strimzi's for Kafka 4.

A line that says 05:06:07 was written in the second after that, so each charge would be up to a
second too early, and all charges of a second would come at once. The lines are in the order in
which they were written. Their charges are therefore spread evenly over their second, in that order.

Example: 100 lines have the same second. The first is charged 5 ms after its start, the next one
15 ms after it, and so on, each less its time in the queue and of sending.

Blocks of a log are read by themselves. The lines of a second on the border of two blocks are spread
over that second in each of them.
"""

from typing import Final

import numpy as np

from usage_pipeline.kernels.values import Longs

_SECOND_US: Final = 1_000_000


def spread_us(logged_us: Longs) -> Longs:
    """Return how much later than its line's time each charge came, microseconds.

    Args:
        logged_us: the times of a block's lines, in whole seconds, in the order of the lines.
    """
    _, which, counts = np.unique(logged_us, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray((2 * place + 1) * _SECOND_US // (2 * counts[which]), np.int64)
