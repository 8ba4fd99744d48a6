"""The charges of those who share a quota on one node in one day, compared with many quotas.

Rates of produce and request time do not depend on the quota: they are made once, and each candidate
only compares. Fetches, mutations and ids are replayed for each.

Example: 1,500 bytes at once at 100 a second, and at "x2": 5,000 ms and 0 of waiting, from one pass
over the charges.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from sidecar.pipeline.kernels.bucket import bucket_waits
from sidecar.pipeline.kernels.ids import id_waits, new_ids
from sidecar.pipeline.kernels.rate import fetch_rates, rates
from sidecar.pipeline.kernels.spread import spread_waits
from sidecar.pipeline.kernels.values import (
    ChargeResults,
    Charges,
    Doubles,
    Flags,
    Longs,
    Rates,
    Span,
)
from sidecar.pipeline.kernels.wait import LONG_MAX, waits
from sidecar.pipeline.replay.scenarios import Scenario

RATE: Final = "rate"
TOKEN_BUCKET: Final = "token-bucket"  # noqa: S105  an algorithm, not a password
BURST_SPREADING: Final = "burst-spreading"
PRODUCER_IDS: Final = "producer-ids"

_ALGORITHMS: Final = {
    "produce": (RATE,),
    "fetch": (RATE,),
    "request": (RATE,),
    "controller_mutation": (TOKEN_BUCKET, BURST_SPREADING),
    "producer_ids": (PRODUCER_IDS,),
}
_MS: Final = 1000


class Windows(NamedTuple):
    """How far back quotas look."""

    rate: Span = Span(11, 1000)
    mutation: Span = Span(11, 1000)
    ids: Span = Span(11, 3_600_000)


@dataclass(frozen=True, slots=True)
class Group:
    """Charges in their order.

    Attributes:
        quota_type: of all.
        shared: the id of who shares the quota.
        charges: those whose amount is known.
        limit: in force, NaN for none.
        entity: the id of whose quota it is, for each charge.
        waited_ms: of mutations, from the charge to the answer.
        producer_id: of ids.
    """

    quota_type: str
    shared: int
    charges: Charges
    limit: Doubles
    entity: Longs
    waited_ms: Longs
    producer_id: Longs

    @property
    def algorithms(self) -> tuple[str, ...]:
        """That a quota of this kind is replayed by."""
        return _ALGORITHMS[self.quota_type]

    def limits(self, scenario: Scenario, wanted: int | None) -> Doubles | None:
        """The limit of each charge in a scenario; None: it is not about this group.

        Args:
            scenario: to replay.
            wanted: the id of its entity; None: it is about everybody.
        """
        if scenario.quota_type not in {None, self.quota_type}:
            return None
        own = np.ones(self.limit.size, np.bool_)
        if wanted is not None and wanted != self.shared:
            own = self.entity == wanted
        if not own.any():
            return None
        other = scenario.quota or self.limit * (scenario.factor or 1.0)
        return np.where(own, other, self.limit)


class Replayer:
    """Holds a group against quotas; what does not depend on them is made once."""

    def __init__(self, group: Group, windows: Windows) -> None:
        self._group = group
        self._windows = windows
        self._rates: dict[bytes, Rates] = {}
        self._new: Flags | None = None

    def replay(self, algorithm: str, limit: Doubles, *, counts: bool) -> ChargeResults:
        """What becomes of each charge.

        Args:
            algorithm: of the group's.
            limit: of each charge; NaN for none.
            counts: whether there is a quota of this kind all the time; else as it was.
        """
        size = limit.size
        charges = self._group.charges
        if counts:
            charges = charges._replace(counts=np.ones(size, np.bool_))
        if algorithm == RATE:
            return self._rate(charges, limit)
        if algorithm == PRODUCER_IDS:
            return self._ids(limit)
        return self._mutations(algorithm, charges, limit)

    def _rate(self, charges: Charges, limit: Doubles) -> ChargeResults:
        seen = self._seen_of(charges, limit)
        results = ChargeResults.none(limit.size)._replace(used=seen.rate, rate=seen.rate)
        if not charges.counts.all():
            # What was used before there was any quota is reported too.
            every = charges._replace(counts=np.ones(limit.size, np.bool_))
            results = results._replace(rate=self._seen_of(every, limit).rate)
        is_request = self._group.quota_type == "request"
        most_ms = self._windows.rate.window_ms if is_request else LONG_MAX
        waits(seen, limit, most_ms, results.wait_ms)
        return results

    def _seen_of(self, charges: Charges, limit: Doubles) -> Rates:
        drops = _holds(limit)
        if self._group.quota_type == "fetch" and drops.any():
            seen = Rates.none(limit.size)
            fetch_rates(charges, limit, self._windows.rate, seen)
            return seen
        key = np.packbits(charges.counts).tobytes() + np.packbits(drops).tobytes()
        if key not in self._rates:
            seen = Rates.none(limit.size)
            rates(charges, drops, self._windows.rate, seen)
            self._rates[key] = seen
        return self._rates[key]

    def _mutations(self, algorithm: str, charges: Charges, limit: Doubles) -> ChargeResults:
        span = self._windows.mutation
        results = ChargeResults.none(limit.size)
        if algorithm == TOKEN_BUCKET:
            bucket_waits(charges, limit, span.samples * (span.window_ms / _MS), results)
            # Kafka's metric mutation-rate, of what was let in.
            accepted = charges._replace(counts=~results.refused)
            seen = Rates.none(limit.size)
            rates(accepted, _holds(limit), span, seen)
            results = results._replace(rate=seen.rate)
        else:
            spread_waits(charges, limit, span, results)
            results = results._replace(rate=np.nan_to_num(results.used))
        np.maximum(results.wait_ms - self._group.waited_ms, 0, out=results.wait_ms)
        return results

    def _ids(self, limit: Doubles) -> ChargeResults:
        charges, span = self._group.charges, self._windows.ids
        if self._new is None:
            found, number = np.unique(self._group.producer_id, return_inverse=True)
            self._new = np.zeros(limit.size, np.bool_)
            new_ids(charges.at_ms, number, found.size, span.window_ms, self._new)
        results = ChargeResults.none(limit.size)
        id_waits(charges.at_ms, self._new, limit, span, results)
        seen = Rates.none(limit.size)
        made = charges._replace(counts=self._new)
        rates(made, np.ones(limit.size, np.bool_), span, seen)
        return results._replace(rate=seen.rate * (span.window_ms / _MS))


def _holds(limit: Doubles) -> Flags:
    return (limit > 0) & (limit < np.inf)


def applied(
    group: Group, scenarios: tuple[tuple[Scenario, int | None], ...]
) -> Iterator[tuple[Scenario, Doubles]]:
    """The scenarios that are about a group, and its limits in them.

    What is in force always is; a multiple of nothing is left out.
    """
    for scenario, wanted in scenarios:
        limit = group.limits(scenario, wanted)
        if limit is not None and (scenario.factor == 1 or _holds(limit).any()):
            yield scenario, limit
