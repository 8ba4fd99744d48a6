"""Replays the charges of many groups in a Spark worker: packed rows in, Arrow out.

The rows of a shard are sorted by their first charge (``packing``). A worker collects charges until
the shard ends, and then replays them. If there are too many, it replays the largest groups earlier,
up to the time before which no more charges arrive. A worker thus has about a million charges in
memory, however many a tenant has.

Example: 1,000 charges of alice's produce quota on brokers 1 and 2 are two groups, and with two
scenarios four rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.charge import CHARGE, Records, joined, taken
from usage_pipeline.kernels.places import LINE_BITS, broker_of, day_of
from usage_pipeline.kernels.values import ChargeResults, Longs
from usage_pipeline.replay.columns import Columns, Slots
from usage_pipeline.replay.group import Asked, Replay, Windows
from usage_pipeline.replay.packing import NAMES, Names
from usage_pipeline.replay.scenarios import IN_FORCE, Scenario, sweep
from usage_pipeline.replay.shards import Shards
from usage_pipeline.replay.slots import Slot
from usage_pipeline.runtime.by_workers import Batches
from usage_pipeline.tables.arrow import arrow_schema, schema_of
from usage_pipeline.tables.schemas import GOLD_REPLAY, QUOTA_TYPES

MOST_RETAINED: Final = 1 << 20
"""The charges that a worker collects before it replays some: about 300 MB."""
_PIECE: Final = 1 << 15
"""The charges that are replayed at once, so that they stay in the processor's cache."""
COMPARED: Final = (
    "dt date, broker int, quota_type string, entity string, shared_by string, at_ms bigint,"
    " src_file string, src_offset bigint, position int, limit double, rate double,"
    " throttle_ms bigint, accepted boolean, logged_throttle_ms bigint"
)
"""The columns of ``Comparison``."""
_REPLAY: Final = arrow_schema(GOLD_REPLAY.columns)
_COMPARED: Final = schema_of(COMPARED)


class _Received:
    """The names and slots of a shard, numbered in the order of arrival."""

    def __init__(self) -> None:
        self.peaks: dict[tuple[int, str], float] = {}
        self._slots: dict[Slot, int] = {}
        self._names: dict[tuple[int, str], int] = {}
        self._files: dict[str, int] = {}
        self._made: Slots | None = None

    def numbered(self, names: Names, records: Records) -> Records:
        """Return the records with this shard's numbers of slots and files."""
        self.peaks |= {(kind, shared_by): peak for kind, shared_by, peak in names.peaks}
        slots = [self._slots.setdefault(each, len(self._slots)) for each in names.slots]
        files = [self._files.setdefault(each, len(self._files)) for each in names.files]
        if not records.size:
            return records
        if files != list(range(len(files))):
            records = _with_files(records, np.array(files, np.int64))
        if slots != list(range(len(slots))):
            records = joined([records])
            records["slot"] = np.array(slots, np.int32)[records["slot"]]
        return records

    def ordered(self, records: Records) -> tuple[Records, list[str]]:
        """Return the records with files numbered in the order of their names, and the names."""
        files = sorted(self._files)
        rank = np.zeros(len(files), np.int64)
        rank[[self._files[each] for each in files]] = np.arange(len(files))
        is_ordered = bool((np.diff(rank) > 0).all())
        return records if is_ordered else _with_files(records, rank), files

    def number_of(self, kind: int, name: str) -> int:
        """Return the number of an entity, or of the clients that share a quota of this kind."""
        return self._names.setdefault((kind, name), len(self._names))

    @property
    def slots(self) -> Slots:
        """The slots so far."""
        if self._made is None or self._made.kind.size < len(self._slots):
            shared = [self.number_of(each.kind, each.shared_by) for each in self._slots]
            whose = [self.number_of(each.kind, each.entity) for each in self._slots]
            self._made = Slots(
                [name for _, name in self._names],
                np.array([each.kind for each in self._slots], np.int64),
                np.array(shared, np.int64),
                np.array(whose, np.int64),
                np.array([each.limit for each in self._slots], np.float64),
                np.array([each.counts for each in self._slots], np.bool_),
            )
        return self._made


@dataclass(frozen=True, slots=True)
class Sweep:
    """Computes sums for each group, entity and scenario.

    Attributes:
        windows: the windows of quotas.
        scenarios: the scenarios to replay.
        candidates: the number of additional candidates for each group with a peak.
        shards: the shards, of which each replays some of the scenarios; None if each replays all.
        most_retained: the number of charges at which some are replayed.
    """

    windows: Windows
    scenarios: Sequence[Scenario]
    candidates: int = 0
    shards: Shards | None = None
    most_retained: int = MOST_RETAINED

    def rows(self, batches: Batches) -> Batches:
        """Return rows of GOLD_REPLAY.

        Args:
            batches: rows of PACKED, sorted by ``packing.IN_ORDER``.
        """
        for number, shard in _shards(batches):
            open_shard = _SweptShard(self, number)
            for since_ms, names, records in shard:
                open_shard.add(since_ms, names, records)
            yield from _table(_REPLAY, list(zip(*open_shard.rows(), strict=True))).to_batches()

    def asked(self, shard: int, kind: int, shared_by: str, received: _Received) -> list[Asked]:
        """Return the scenarios that may apply to a group and that a shard replays."""
        quota_type = QUOTA_TYPES[kind]
        asked = [
            Asked(
                each,
                None
                if each.entity in {None, shared_by}
                else received.number_of(kind, str(each.entity)),
            )
            for each in self.scenarios
            if each.quota_type in {None, quota_type}
        ]
        peak = received.peaks.get((kind, shared_by), 0.0)
        if self.candidates:
            tried = sweep([(quota_type, shared_by, peak)], self.candidates)
            asked += map(Asked, tried)
        return asked if self.shards is None else asked[self.shards.scenarios(shard)]


class _SweptShard:
    """A shard that is replayed row by row."""

    def __init__(self, swept: Sweep, shard: int) -> None:
        self._sweep = swept
        self._shard = shard
        self._received = _Received()
        self._pending: list[Records] = []
        self._size = 0
        self._most = swept.most_retained
        self._open: dict[tuple[int, int], Replay] = {}

    def add(self, since_ms: int, names: Names, records: Records) -> None:
        """Add a row. Later rows have no earlier charges than its first."""
        if self._size >= self._most:
            self._replay_before(since_ms)
        self._pending.append(self._received.numbered(names, records))
        self._size += records.size

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Replay the remaining charges."""
        slots = self._received.slots
        if self._size:
            for key, replay in self._replayed(joined(self._pending), is_whole=True):
                self._open.pop(key, None)
                yield from _summed(key, slots, replay)
        for key, replay in self._open.items():
            yield from _summed(key, slots, replay)

    def _replay_before(self, time_ms: int) -> None:
        """Replay the largest groups until half of the allowed charges remain."""
        records = joined(self._pending)
        slots = self._received.slots
        is_early = records["at_ms"] < time_ms
        group = _numbers(records["place"], slots.shared[records["slot"]])
        sizes = np.bincount(group[is_early], minlength=int(group.max()) + 1)
        largest = np.argsort(-sizes)
        enough = int(np.searchsorted(np.cumsum(sizes[largest]), self._size - self._most // 2)) + 1
        is_chosen = np.zeros(sizes.size, np.bool_)
        is_chosen[largest[:enough]] = True
        chosen = is_early & is_chosen[group]
        early = taken(records, np.flatnonzero(chosen))
        self._open.update(self._replayed(early, is_whole=False))
        left = taken(records, np.flatnonzero(~chosen))
        self._pending, self._size = [left], left.size
        # Charges of a single time can't be replayed yet, so there may be more in memory.
        self._most = max(self._sweep.most_retained, left.size * 2)

    def _replayed(
        self, records: Records, *, is_whole: bool
    ) -> Iterator[tuple[tuple[int, int], Replay]]:
        """Replay these charges; return place and sharing clients of each group with its replay.

        Args:
            records: the records of some groups.
            is_whole: whether new groups are complete in this part.
        """
        ordered, _ = self._received.ordered(records)
        columns = Columns.sort(ordered, self._received.slots)
        for rows in columns.groups():
            first = columns.charges[rows.start]
            key = int(first["place"]), int(columns.shared[rows.start])
            pieces = [
                slice(start, min(start + _PIECE, rows.stop))
                for start in range(rows.start, rows.stop, _PIECE)
            ]
            replay = self._open.get(key)
            if replay is None:
                kind = int(columns.slots.kind[first["slot"]])
                shared_by = columns.slots.names[key[1]]
                asked = self._sweep.asked(self._shard, kind, shared_by, self._received)
                is_one_part = is_whole and len(pieces) == 1
                replay = Replay(QUOTA_TYPES[kind], self._sweep.windows, asked, is_whole=is_one_part)
            for piece in pieces:
                replay.add(columns.group(piece), columns.unknown(piece))
            yield key, replay


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares each charge with the current quotas, with all charges of a shard in memory."""

    windows: Windows

    def rows(self, batches: Batches) -> Batches:
        """Return rows of ``COMPARED`` for charges with known amounts.

        Args:
            batches: rows of PACKED, sorted by ``packing.IN_ORDER``.
        """
        for _, shard in _shards(batches):
            received = _Received()
            pieces = [received.numbered(names, records) for _, names, records in shard]
            charges, files = received.ordered(joined(pieces))
            yield from self._compared(charges, files, received.slots).to_batches()

    def _compared(self, charges: Records, files: Sequence[str], slots: Slots) -> pa.Table:
        columns = Columns.sort(charges, slots)
        kept, results = [], []
        for rows in columns.groups():
            group = columns.group(rows)
            replay = Replay(group.quota_type, self.windows, [Asked(IN_FORCE)], is_whole=True)
            results.append(replay.results(group))
            kept.append(columns.known_charges(rows))
        if not kept:
            return _table(_COMPARED, [])
        joint = ChargeResults(*(np.concatenate(each) for each in zip(*results, strict=True)))
        return _table(_COMPARED, _compared(np.concatenate(kept), joint, files, slots))


def _shards(batches: Batches) -> Iterator[tuple[int, Iterator[tuple[int, Names, Records]]]]:
    """Yield each shard and its rows; read them before the next shard's."""
    for shard, rows in groupby(_rows(batches), key=itemgetter(0)):
        yield shard, (row[1:] for row in rows)


def _rows(batches: Batches) -> Iterator[tuple[int, int, Names, Records]]:
    for batch in batches:
        shards, since_ms = batch["shard"].to_pylist(), batch["since_ms"].to_pylist()
        names, records = batch["names"], batch["records"]
        for at, (shard, since) in enumerate(zip(shards, since_ms, strict=True)):
            charges = np.frombuffer(records[at].as_buffer(), CHARGE)
            yield shard, since, NAMES.decode(names[at].as_buffer()), charges


def _summed(key: tuple[int, int], slots: Slots, replay: Replay) -> Iterator[tuple[object, ...]]:
    place, shared = key
    for whose, sums in replay.summed():
        yield (
            *(day_of(place), broker_of(place), replay.quota_type),
            *(slots.names[whose], slots.names[shared]),
            *sums,
        )


def _compared(
    charges: Records, results: ChargeResults, files: Sequence[str], slots: Slots
) -> list[object]:
    places, slot, line = charges["place"].tolist(), charges["slot"], charges["line"]
    names = pa.array(slots.names)
    limit = slots.limit[slot]
    return [
        [day_of(each) for each in places],
        [broker_of(each) for each in places],
        [slots.type_of(each) for each in slot.tolist()],
        names.take(pa.array(slots.whose[slot])),
        names.take(pa.array(slots.shared[slot])),
        charges["at_ms"],
        pa.array(files).take(pa.array(line >> LINE_BITS)),
        (line & ((1 << LINE_BITS) - 1)) - charges["position"],
        charges["position"],
        pa.array(limit, mask=np.isnan(limit)),
        *(results.rate, results.wait_ms, ~results.refused),
        charges["logged_throttle_ms"],
    ]


def _with_files(records: Records, number: Longs) -> Records:
    """Return the records with other file numbers."""
    renumbered = joined([records])
    offset = records["line"] & ((1 << LINE_BITS) - 1)
    renumbered["line"] = (number[records["line"] >> LINE_BITS] << LINE_BITS) | offset
    return renumbered


def _numbers(place: Longs, shared: Longs) -> Longs:
    """Return for each charge the number of its place and sharing clients, from 0."""
    _, at = np.unique(place, return_inverse=True)
    _, number = np.unique(at * (int(shared.max()) + 1) + shared, return_inverse=True)
    return np.asarray(number, np.int64)


def _table(fields: pa.Schema, columns: Sequence[object]) -> pa.Table:
    return pa.table(
        [
            column
            if isinstance(column, pa.ChunkedArray | pa.Array)
            else pa.array(column, field.type)
            for column, field in zip(columns or [[]] * len(fields), fields, strict=True)
        ],
        names=fields.names,
    )
