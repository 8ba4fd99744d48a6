"""Sums over charges."""

import math

import numpy as np
import pytest

from usage_pipeline.kernels.tally import Sums, note_wait, tally
from usage_pipeline.kernels.values import ChargeResults, Charges, Doubles
from usage_pipeline.kernels.wait import LONG_MAX


def charge_results(*used: float) -> ChargeResults:
    found = ChargeResults.none(len(used))
    found.compared[:] = found.rate[:] = used
    return found


def charges(amount: Doubles) -> Charges:
    """Returns charges of these amounts, a millisecond apart."""
    return Charges.none(amount.size)._replace(at_ms=np.arange(amount.size), amount=amount)


def test_near_and_over_are_counted() -> None:
    """Of rates of 70, 80, 100 and 150 at 100, 3 are near and 1 is over, or 2 where 100 is over."""
    for over_at, over in ((False, 1), (True, 2)):
        sums = Sums.none(1)
        seen = charge_results(70, 80, 100, 150)
        seen.wait_ms[3] = 7
        of_five = charges(np.full(4, 5.0))
        tally(np.zeros(4, np.int64), of_five, np.full(4, 100.0), seen, over_at, sums)
        assert [4, 1, 7, 7, 3, over] == list(sums.counts[0])
        assert (150.0, 100.0) == (sums.peaks[0], sums.last[0])
        assert [20.0, 5.0] == list(sums.amounts[0])
        assert [[7, 3], [0, 0], [0, 0]] == sums.moments[0].tolist()


def test_entities_are_summed_apart_and_endless_waits_stay_so() -> None:
    """The last limit is retained, or that it ended; a refusal is throttled without a wait."""
    seen = charge_results(1, 2, 3, 4)
    seen.wait_ms[:2] = LONG_MAX
    seen.refused[2] = True
    limit = np.array([5.0, 5.0, 6.0, math.nan])
    sums = Sums.none(2)
    amount = np.array([1.0, 2.0, 4.0, 8.0])
    tally(np.array([0, 0, 1, 1]), charges(amount), limit, seen, False, sums)
    assert [[2, 2, LONG_MAX, LONG_MAX, 0, 0], [2, 1, 0, 0, 0, 0]] == sums.counts.tolist()
    assert [[3.0, 3.0], [12.0, 4.0]] == sums.amounts.tolist()
    assert [2.0, 4.0] == list(sums.peaks)
    assert 5.0 == sums.last[0]
    assert math.isnan(sums.last[1])


@pytest.mark.parametrize(
    ("waits", "kept"),
    [
        ([], []),
        # A later wait of the same ten minutes counts if it is longer.
        ([(5, 0), (7, 9)], [(7, 9)]),
        ([(7, 0), (5, 9)], [(7, 0)]),
        # The longest come first; of four, the shortest is dropped.
        ([(1, 0), (4, 10), (2, 20), (3, 30)], [(4, 10), (3, 30), (2, 20)]),
        # One of the kept becomes the longest, or not the shortest any more.
        ([(3, 0), (2, 10), (1, 20), (9, 11)], [(9, 11), (3, 0), (1, 20)]),
        ([(4, 0), (2, 10), (1, 20), (3, 21)], [(4, 0), (3, 21), (2, 10)]),
    ],
)
def test_the_longest_waits_are_kept(
    waits: list[tuple[int, int]], kept: list[tuple[int, int]]
) -> None:
    """Waits in milliseconds with their minutes, one for each ten minutes."""
    sums = Sums.none(1)
    for wait_ms, minute in waits:
        note_wait(sums.moments[0], minute * 60_000, wait_ms)
    assert kept == [(wait, at // 60_000) for wait, at in sums.moments[0].tolist() if wait]
