"""Replays the charges to a shared quota on one node and day, for many quotas.

The charges may come in consecutive parts. Between parts, only the state of each algorithm and the
sums remain, so a group of any size needs only the memory of a part.

Rates of produce and request time do not depend on the quota, so they are computed once and compared
with each candidate. Fetches are, too, until one exceeds its limit. Mutations and ids are replayed
for each candidate.

Example: 1,500 bytes at once wait 5,000 ms at 100 a second, and 0 ms at "x2". One pass over the
charges computes both.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from usage_pipeline.kernels.bucket import Bucket, bucket_waits
from usage_pipeline.kernels.ids import NEVER, Remembered, id_waits, new_ids
from usage_pipeline.kernels.numbered import distinct
from usage_pipeline.kernels.rate import Samples, rates
from usage_pipeline.kernels.spread import Bursts, no_bursts, spread_waits
from usage_pipeline.kernels.tally import NEAR, Sums, tally
from usage_pipeline.kernels.values import (
    ChargeResults,
    Charges,
    Doubles,
    Flags,
    Longs,
    Rates,
    Span,
)
from usage_pipeline.kernels.wait import LONG_MAX, waits
from usage_pipeline.replay.scenarios import Scenario

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
_US: Final = 1000
"""Microseconds of a millisecond."""


class Windows(NamedTuple):
    """The windows of quotas."""

    rate: Span = Span(11, 1000)
    mutation: Span = Span(11, 1000)
    ids: Span = Span(11, 3_600_000)


@dataclass(frozen=True, slots=True)
class Group:
    """The sorted charges of a group, or a part of them.

    Attributes:
        quota_type: the kind of quota.
        charges: the charges with known amounts.
        limit: the current limit of each charge, NaN for none.
        entity: the number of the quota's entity, for each charge.
        waited_ms: for mutations, the time from the charge to the response.
        producer_id: for producer ids, the id.
    """

    quota_type: str
    charges: Charges
    limit: Doubles
    entity: Longs
    waited_ms: Longs
    producer_id: Longs


class Asked(NamedTuple):
    """A scenario for a group.

    Attributes:
        scenario: the scenario to replay.
        whose: the number of the entity that it applies to; None for the whole group.
    """

    scenario: Scenario
    whose: int | None = None


@dataclass(slots=True)
class _Track:
    """The state of a scenario with an algorithm, after the charges so far.

    Attributes:
        asked: the scenario.
        algorithm: one of the group's algorithms.
        sums: the sums of each entity, by the group's rows.
        is_about: whether any charge belongs to its entity.
        throttles: whether any limit could throttle.
        has_exceeded: whether a fetch has exceeded its limit, so that it was taken back.
        seen: the recorded values of times with a quota.
        every: the recorded values of all times; None if there always was a quota.
    """

    asked: Asked
    algorithm: str
    sums: Sums
    is_about: bool = False
    throttles: bool = False
    has_exceeded: bool = False
    seen: Samples | None = None
    every: Samples | None = None
    bucket: Bucket = field(default_factory=Bucket.full)
    bursts: Bursts | None = None


class Replay:
    """A group that is replayed part by part."""

    def __init__(
        self, quota_type: str, windows: Windows, asked: Sequence[Asked], *, is_whole: bool = False
    ) -> None:
        """Create a group without charges.

        Args:
            quota_type: the kind of quota.
            windows: the windows of quotas.
            asked: the scenarios.
            is_whole: whether all charges come in one part.
        """
        self.quota_type = quota_type
        self._windows = windows
        self._is_whole = is_whole
        self._tracks = [
            _Track(each, algorithm, Sums.none(0))
            for each in asked
            if each.scenario.quota_type in {None, quota_type}
            for algorithm in _ALGORITHMS[quota_type]
        ]
        self._row_of: dict[int, int] = {}
        self._unknown: list[int] = []
        self._ids: tuple[Longs, Remembered] = (
            np.zeros(0, np.int64),
            Remembered(np.zeros(0, np.int64), np.full(2, NEVER)),
        )
        self._id_rates = Samples.none(windows.ids)

    def add(self, group: Group, unknown: Longs) -> None:
        """Replay the next part.

        Args:
            group: the charges with known amounts.
            unknown: the entities of the other charges.
        """
        entity = self._rows_of(np.concatenate([group.entity, unknown]))
        for row in entity[group.entity.size :].tolist():
            self._unknown[row] += 1
        entity = entity[: group.entity.size]
        part = _Part(group, self._windows)
        for track in self._tracks:
            limit, is_about = _limits(group, track.asked)
            track.is_about |= is_about
            track.throttles = track.throttles or bool(_holds(limit).any())
            is_left_out = not is_about or not (track.throttles or track.asked.scenario.factor == 1)
            if self._is_whole and is_left_out:
                # A later part may contain the scenario's entity, and its charges count from here.
                continue
            results = self._results(part, track, limit)
            track.sums = track.sums.grown(len(self._row_of))
            over_at = track.algorithm == BURST_SPREADING
            tally(entity, group.charges, limit, results, over_at, track.sums)

    def results(self, group: Group) -> ChargeResults:
        """Return the effect of the current quotas on each charge, by the brokers' algorithm."""
        (track,) = self._tracks[:1]
        return self._results(_Part(group, self._windows), track, group.limit)

    def summed(self) -> Iterator[tuple[int, tuple[object, ...]]]:
        """Return the number of an entity, and its sums in a scenario that applies to the group.

        The sums are the columns of GOLD_REPLAY from ``algorithm`` on. This omits multiples of
        quotas that do not exist.
        """
        for track in self._tracks:
            if not track.is_about or not (track.throttles or track.asked.scenario.factor == 1):
                continue
            sums = track.sums.grown(len(self._row_of))
            for whose, row in self._row_of.items():
                last, counts = float(sums.last[row]), sums.counts[row].tolist()
                yield (
                    whose,
                    (
                        *(track.algorithm, track.asked.scenario.name),
                        None if math.isnan(last) else last,
                        *counts[:NEAR],
                        *sums.amounts[row].tolist(),
                        float(sums.peaks[row]),
                        *counts[NEAR:],
                        self._unknown[row],
                        [(ms * _US, wait) for wait, ms in sums.moments[row].tolist() if wait],
                    ),
                )

    def _rows_of(self, entity: Longs) -> Longs:
        if entity.size and (entity == entity[0]).all():
            row = self._row_of.setdefault(int(entity[0]), len(self._row_of))
            self._unknown += [0] * (len(self._row_of) - len(self._unknown))
            return np.full(entity.size, row)
        # This needs no sort, unlike numpy's unique: the numbers of a worker's names are small.
        whose, at = distinct(entity, int(entity.max(initial=-1)) + 1)
        rows = [self._row_of.setdefault(each, len(self._row_of)) for each in whose.tolist()]
        self._unknown += [0] * (len(self._row_of) - len(self._unknown))
        return np.array(rows, np.int64)[at]

    def _results(self, part: "_Part", track: _Track, limit: Doubles) -> ChargeResults:
        charges = part.group.charges
        if track.asked.scenario.quota is not None:
            charges = charges._replace(counts=part.always)
        if track.algorithm == RATE:
            return self._rate(part, track, charges, limit)
        if track.algorithm == PRODUCER_IDS:
            return self._of_ids(part, track, limit)
        return self._mutations(part, track, charges, limit)

    def _rate(
        self, part: "_Part", track: _Track, charges: Charges, limit: Doubles
    ) -> ChargeResults:
        is_fetch = self.quota_type == "fetch"
        before = track.seen
        if is_fetch and not track.has_exceeded:
            # Until a fetch exceeds its limit, one pass is enough for all limits.
            _, seen = part.rates(charges, limit, before, takes_back=False)
            held = np.where(charges.counts & _holds(limit), limit, np.inf)
            track.has_exceeded = bool((seen.rate > held).any())
        track.seen, seen = part.rates(charges, limit, before, takes_back=track.has_exceeded)
        results = ChargeResults.none(limit.size)._replace(compared=seen.rate, rate=seen.rate)
        if track.every is not None or not charges.counts.all():
            # Usage from before the first quota is reported too.
            every = charges._replace(counts=part.always)
            track.every, of_all = part.rates(
                every, limit, track.every or before, takes_back=is_fetch
            )
            results = results._replace(rate=of_all.rate)
        most_ms = self._windows.rate.window_ms if self.quota_type == "request" else LONG_MAX
        waits(seen, limit, most_ms, results.wait_ms)
        return results

    def _mutations(
        self, part: "_Part", track: _Track, charges: Charges, limit: Doubles
    ) -> ChargeResults:
        span = self._windows.mutation
        results = ChargeResults.none(limit.size)
        if track.algorithm == TOKEN_BUCKET:
            burst_s = span.samples * (span.window_ms / _MS)
            bucket_waits(charges, limit, burst_s, track.bucket, results)
            # Kafka's metric mutation-rate, which counts accepted mutations.
            accepted = charges._replace(counts=~results.refused)
            track.seen = track.seen or Samples.none(span)
            seen = Rates.none(limit.size)
            rates(accepted, limit, False, span, track.seen, seen)
            results = results._replace(rate=seen.rate)
        else:
            track.bursts = track.bursts or no_bursts(span)
            spread_waits(charges, limit, span, track.bursts, results)
            results = results._replace(rate=np.nan_to_num(results.compared))
        np.maximum(results.wait_ms - part.group.waited_ms, 0, out=results.wait_ms)
        return results

    def _of_ids(self, part: "_Part", track: _Track, limit: Doubles) -> ChargeResults:
        charges, span = part.group.charges, self._windows.ids
        if part.ids is None:
            part.ids = self._new_ids(part.group)
        is_new, rate = part.ids
        results = ChargeResults.none(limit.size)
        id_waits(charges.at_ms, is_new, limit, span, track.bucket, results)
        return results._replace(rate=rate)

    def _new_ids(self, group: Group) -> tuple[Flags, Doubles]:
        """Return the new ids and their rate, which do not depend on a limit."""
        span, at_ms = self._windows.ids, group.charges.at_ms
        known, (noted_ms, clock) = self._ids
        # Expired ids are dropped.
        is_kept = noted_ms + span.window_ms >= clock[1]
        known, noted_ms = known[is_kept], noted_ms[is_kept]
        ids = np.union1d(known, group.producer_id)
        remembered = Remembered(np.full(ids.size, NEVER), clock)
        remembered.noted_ms[np.searchsorted(ids, known)] = noted_ms
        is_new = np.zeros(at_ms.size, np.bool_)
        number = np.searchsorted(ids, group.producer_id)
        new_ids(at_ms, number, span.window_ms, remembered, is_new)
        self._ids = ids, remembered
        seen = Rates.none(at_ms.size)
        made = group.charges._replace(counts=is_new)
        rates(made, np.ones(at_ms.size), False, span, self._id_rates, seen)
        return is_new, seen.rate * (span.window_ms / _MS)


class _Part:
    """A part of a group, with the values that do not depend on limits."""

    def __init__(self, group: Group, windows: Windows) -> None:
        self.group = group
        self.always: Flags = np.ones(group.limit.size, np.bool_)
        self.ids: tuple[Flags, Doubles] | None = None
        self._span = windows.rate
        self._made: dict[tuple[int, bytes, bytes], tuple[Samples | None, Samples, Rates]] = {}

    def rates(
        self, charges: Charges, limit: Doubles, before: Samples | None, *, takes_back: bool
    ) -> tuple[Samples, Rates]:
        """Return the rates after each charge, and the recorded values.

        Args:
            charges: the charges of the group that count, or those that do not.
            limit: the limit of each charge.
            before: the previously recorded values, which do not change; None for none.
            takes_back: whether charges over their limits are reversed.
        """
        drops = _holds(limit)
        seen = Rates.none(limit.size)
        if takes_back and drops.any():
            after = self._after(before)
            rates(charges, limit, takes_back, self._span, after, seen)
            return after, seen
        key = id(before), np.packbits(charges.counts).tobytes(), np.packbits(drops).tobytes()
        if key not in self._made:
            after = self._after(before)
            rates(charges, limit, takes_back, self._span, after, seen)
            # The key keeps the earlier object alive, so that no other object gets its id.
            self._made[key] = before, after, seen
        _, after, seen = self._made[key]
        return after, seen

    def _after(self, before: Samples | None) -> Samples:
        if before is None:
            return Samples.none(self._span)
        return Samples(before.total.copy(), before.marks.copy())


def _limits(group: Group, asked: Asked) -> tuple[Doubles, bool]:
    """Return the limit of each charge in a scenario, and whether it applies to any charge."""
    scenario, whose = asked
    if scenario.quota is not None:
        other = np.full(group.limit.size, scenario.quota)
    else:
        other = group.limit * (scenario.factor or 1.0)
    if whose is None:
        return other, True
    own = group.entity == whose
    return np.where(own, other, group.limit), bool(own.any())


def _holds(limit: Doubles) -> Flags:
    return (limit > 0) & (limit < np.inf)
