"""Charges of one client with quotas that are set, changed and removed, and their predictions."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from hypothesis import strategies as st

from sidecar.quotas.entities import Entity, QuotaKey
from sidecar.quotas.rate import QuotaWindow
from tests.support.prediction import Charge, MakeQuota, Prediction, Predictor
from usage_pipeline.kernels.values import ChargeResults, Charges, Doubles, Rates

ETL: Final = Entity(client_id="etl")
OTHER: Final = Entity(client_id="other")


class Event(NamedTuple):
    """A charge, and what is in force at its time.

    Attributes:
        at_ms: when.
        amount: how much.
        strict: of mutations.
        counts: whether anybody has a quota of its kind.
        limit: of this client; None: none.
    """

    at_ms: int
    amount: float
    strict: bool
    counts: bool
    limit: float | None


_STEPS = st.one_of(
    st.integers(0, 400), st.just(0), st.integers(-1500, 0), st.integers(900, 1100), st.just(30_000)
)
_LIMITS = st.sampled_from([None, 0.5, 7.0, 100.0, 1e-300, 0.0, float("inf")])
_AMOUNTS = st.one_of(st.integers(0, 60), st.floats(0, 3000))


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Draws times that stand still, run back and leap, and quotas that change meanwhile."""
    at_ms = draw(st.integers(0, 10**12))
    events = []
    for _ in range(draw(st.integers(1, 4))):
        limit = draw(_LIMITS)
        counts = limit is not None or draw(st.booleans())
        for step, amount, strict in draw(
            st.lists(st.tuples(_STEPS, _AMOUNTS, st.booleans()), max_size=25)
        ):
            at_ms += step
            events.append(Event(at_ms, float(amount), strict, counts, limit))
    return events


windows = st.builds(QuotaWindow, st.integers(1, 12), st.sampled_from([1, 500, 1000]))


def arrays(events: Iterable[Event]) -> tuple[Charges, Doubles]:
    """Returns the charges and their limits as kernels take them."""
    found = list(events)
    made = Charges.none(len(found))
    limit = np.full(len(found), np.nan)
    for at, each in enumerate(found):
        made.at_ms[at], made.amount[at] = each.at_ms, each.amount
        made.strict[at], made.counts[at] = each.strict, each.counts
        if each.limit is not None:
            limit[at] = each.limit
    return made, limit


def parts(size: int, cut: int) -> Iterator[slice]:
    """Returns two parts of so many charges, which come one after the other."""
    yield slice(0, min(cut, size))
    yield slice(min(cut, size), size)


CUTS: Final = st.integers(0, 30)
"""Where charges are cut in two: what is kept between them is all that counts."""

_Arrays = TypeVar("_Arrays", Charges, ChargeResults, Rates)


def part(arrays: _Arrays, rows: slice) -> _Arrays:
    """Returns a part of each array, which is filled in place."""
    kind: Any = type(arrays)
    found: _Arrays = kind(*(each[rows] for each in arrays))
    return found


def predicted(
    events: Iterable[Event],
    key: QuotaKey,
    window: QuotaWindow,
    mutations: MakeQuota | None = None,
) -> list[Prediction]:
    """Returns what the daemon predicts."""
    node = Predictor(window, mutations=mutations)
    found = []
    for each in events:
        quotas = {OTHER: {key.value: 1.0}} if each.counts else {}
        if each.limit is not None:
            quotas[ETL] = {key.value: each.limit}
        node.set_quotas(quotas)
        charge = Charge(each.at_ms, key, "alice", "etl", each.amount, each.strict)
        found.append(node.charge(charge))
    return found
