"""Names as numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from usage_pipeline.kernels.numbered import distinct


@given(st.lists(st.integers(0, 11)), st.integers(12, 40))
def test_distinct_numbers_are_found_with_and_without_sorting(values: list[int], end: int) -> None:
    """Which way is taken is a matter of how many values there are beside the largest."""
    some = np.array(values, np.int64)
    different, at = distinct(some, end)
    assert sorted(set(values)) == different.tolist()
    assert values == different[at].tolist()
