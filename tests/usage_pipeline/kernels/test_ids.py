"""The compiled producer ids equal the daemon's, with filters that are next to never wrong."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidecar.quotas.producer_ids.id_counts import ProducerIds, ProducerIdSettings
from tests.usage_pipeline.kernels.histories import CUTS, part, parts
from usage_pipeline.kernels.bucket import Bucket
from usage_pipeline.kernels.ids import NEVER, Remembered, id_waits, new_ids
from usage_pipeline.kernels.values import ChargeResults, Flags, Longs, Span

EVENTS = st.lists(
    st.tuples(
        st.one_of(
            st.integers(-500, 700),
            st.integers(0, 6000),
            # Just before, at and after the end of a filter, and of its half.
            st.sampled_from([0, 499, 500, 501, 999, 1000, 1001, 2000, 2001]),
        ),
        st.integers(0, 8),
        st.sampled_from([None, 1.0, 2.5, 40.0]),
    ),
    max_size=60,
)


# At the end of its filter an id is still known, and after it new again.
@pytest.mark.slow
@example(events=[(0, 1, 1.0), (1000, 1, 1.0), (1, 1, 1.0)], samples=1, window_s=1, cut=1)
@given(events=EVENTS, samples=st.integers(1, 3), window_s=st.integers(1, 4), cut=CUTS)
def test_new_ids_and_waits_are_the_daemons(
    events: list[tuple[int, int, float | None]], samples: int, window_s: int, cut: int
) -> None:
    """Ids come back before, at and after the end of their filter; limits change."""
    settings = ProducerIdSettings(samples, window_s, false_positive_rate=1e-9)
    daemon = ProducerIds(settings)
    at_ms, number = longs(len(events)), longs(len(events))
    limit = np.full(len(events), np.nan)
    now_ms = 1_000_000
    expected = []
    for at, (step, one, wanted) in enumerate(events):
        now_ms += step
        at_ms[at], number[at] = now_ms, one
        if wanted is not None:
            limit[at] = wanted
        daemon.set_limits({"alice": wanted})
        seen = daemon.record("alice", one, now_ms)
        expected.append((seen.is_new, seen.throttle_ms))
    is_new: Flags = np.zeros(len(events), np.bool_)
    results = ChargeResults.none(len(events))
    span, known, bucket = Span(samples, window_s * 1000), remembered(9), Bucket.full()
    for rows in parts(len(events), cut):
        new_ids(at_ms[rows], number[rows], span.window_ms, known, is_new[rows])
        id_waits(at_ms[rows], is_new[rows], limit[rows], span, bucket, part(results, rows))
    assert expected == list(zip(is_new, results.wait_ms, strict=True))


def remembered(ids: int) -> Remembered:
    return Remembered(np.full(ids, NEVER), np.full(2, NEVER))


def longs(size: int) -> Longs:
    return np.zeros(size, np.int64)


def test_the_docstrings_ids() -> None:
    """At 50 an hour 550 pass; the 551st waits 72 s, and uses 50.09 ids a window."""
    at_ms, number = longs(551), np.arange(551, dtype=np.int64)
    is_new: Flags = np.zeros(551, np.bool_)
    results = ChargeResults.none(551)
    new_ids(at_ms, number, 3_600_000, remembered(551), is_new)
    id_waits(at_ms, is_new, np.full(551, 50.0), Span(11, 3_600_000), Bucket.full(), results)
    assert [0, 72_000] == list(results.wait_ms[-2:])
    assert 50.09 == round(float(results.compared[-1]), 2)
