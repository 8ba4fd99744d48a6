"""Arrow in, Arrow out: what a worker of Spark does with the charges of many groups.

Each row is a charge; rows of a group are found and ordered here, by (time, file, offset).

Example: 1,000 charges of alice's produce quota on brokers 1 and 2 are two groups, and with two
scenarios four rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final

import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels.group import BURST_SPREADING, Group, Replayer, Windows, applied
from sidecar.pipeline.kernels.tally import Sums, tally
from sidecar.pipeline.kernels.values import Charges, Doubles, Flags, Held, Longs
from sidecar.pipeline.sweep import QUOTA_TYPES, Scenario

_TYPE_BITS: Final = 3
_BROKER_BITS: Final = 31
_EPOCH: Final = date(1970, 1, 1)

_GROUP: Final = "dt date, broker int, quota_type string, entity string, shared_by string"
SUMMED: Final = (
    f"{_GROUP}, algorithm string, scenario string, quota double,"
    " events bigint, throttled bigint, throttle_ms_total bigint, throttle_ms_max bigint,"
    " near bigint, over bigint, peak_rate double, unknown bigint"
)
"""The rows of ``Sweep``."""
TOLD: Final = (
    f"{_GROUP}, at_ms bigint, src_file string, src_offset bigint, position int,"
    " limit double, rate double, throttle_ms bigint, accepted boolean, told_ms bigint"
)
"""The rows of ``Retold``."""


def place_of(day: int, broker: int, quota_type: int) -> int:
    """A day, a broker and a kind of quota as one number, as Spark packs them."""
    return ((day << _BROKER_BITS | broker) << _TYPE_BITS) | quota_type


def _type_of(place: int) -> str:
    return QUOTA_TYPES[place & ((1 << _TYPE_BITS) - 1)]


def _broker_of(place: int) -> int:
    return (place >> _TYPE_BITS) & ((1 << _BROKER_BITS) - 1)


def _day_of(place: int) -> date:
    return _EPOCH + timedelta(days=place >> (_TYPE_BITS + _BROKER_BITS))


@dataclass(frozen=True, slots=True)
class _Columns:
    """A table's columns in the order of their groups, each in its own order."""

    place: Longs
    shared: Longs
    whose: Longs
    limit: Doubles
    known: Flags
    extra: Longs
    charges: Charges
    order: Longs

    @classmethod
    def of(cls, table: pa.Table) -> "_Columns":
        place, shared, whose, at_ms = (
            _longs(table, name) for name in ("place", "shared", "whose", "at_ms")
        )
        sequence = _longs(table, "src_offset") + _longs(table, "position")
        order = np.lexsort((sequence, _longs(table, "file"), at_ms, shared, place))
        amount = _doubles(table, "amount")[order]
        extra = _longs(table, "extra")[order]
        return cls(
            place[order],
            shared[order],
            whose[order],
            _doubles(table, "limit")[order],
            ~np.isnan(amount),
            extra,
            Charges(at_ms[order], amount, (extra & 1).astype(np.bool_), _flags(table)[order]),
            order,
        )

    def groups(self) -> Iterator[slice]:
        """Where each group is."""
        if self.place.size == 0:
            return
        changes = (np.diff(self.place) != 0) | (np.diff(self.shared) != 0)
        edges = np.concatenate(([0], np.flatnonzero(changes) + 1, [self.place.size]))
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield slice(start, end)

    def group(self, rows: slice, known: Flags) -> Group:
        """Its charges whose amount is known."""
        extra = self.extra[rows][known]
        at_ms, amount, strict, counts = self.charges
        is_mutation = _type_of(int(self.place[rows.start])) == "controller_mutation"
        return Group(
            _type_of(int(self.place[rows.start])),
            int(self.shared[rows.start]),
            Charges(
                at_ms[rows][known], amount[rows][known], strict[rows][known], counts[rows][known]
            ),
            self.limit[rows][known],
            self.whose[rows][known],
            extra >> 1 if is_mutation else np.zeros_like(extra),
            extra,
        )


@dataclass(frozen=True, slots=True)
class Sweep:
    """Sums for each group, entity and scenario.

    Attributes:
        windows: how far back quotas look.
        names: of entities and of who shares a quota, by their numbers.
        general: scenarios about everybody.
        special: those about one of the names, by its number.
    """

    windows: Windows
    names: Sequence[str]
    general: tuple[Scenario, ...]
    special: Mapping[int, tuple[Scenario, ...]] = field(default_factory=dict)

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows of ``SUMMED``."""
        columns = _Columns.of(table)
        rows = [row for each in columns.groups() for row in self._rows(columns, each)]
        return _table(SUMMED, list(zip(*rows, strict=True)))

    def _rows(self, columns: _Columns, rows: slice) -> Iterator[tuple[object, ...]]:
        known = columns.known[rows]
        group = columns.group(rows, known)
        place = int(columns.place[rows.start])
        whose, entity = np.unique(columns.whose[rows], return_inverse=True)
        unknown = np.bincount(entity[~known], minlength=whose.size)
        replayer = Replayer(group, self.windows)
        for scenario, limit in applied(group, self._scenarios(group.shared, whose)):
            for algorithm in group.algorithms:
                held = replayer.replay(algorithm, limit, counts=scenario.quota is not None)
                sums = Sums.none(whose.size)
                tally(entity[known], held, limit, algorithm == BURST_SPREADING, sums)
                for at, one in enumerate(whose.tolist()):
                    quota = float(sums.last[at])
                    yield (
                        *(_day_of(place), _broker_of(place), group.quota_type),
                        *(self.names[one], self.names[group.shared]),
                        *(algorithm, scenario.name, None if np.isnan(quota) else quota),
                        *sums.counts[at].tolist(),
                        *(float(sums.peaks[at]), int(unknown[at])),
                    )

    def _scenarios(self, shared: int, whose: Longs) -> tuple[tuple[Scenario, int | None], ...]:
        general = tuple((each, None) for each in self.general)
        numbers = dict.fromkeys((shared, *whose.tolist()))
        return general + tuple((each, one) for one in numbers for each in self.special.get(one, ()))


@dataclass(frozen=True, slots=True)
class Retold:
    """What the quotas in force did with each charge.

    Attributes:
        windows: how far back quotas look.
        names: of entities and of who shares a quota, by their numbers.
        files: their names, by their numbers.
    """

    windows: Windows
    names: Sequence[str]
    files: Sequence[str]

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows of ``TOLD``; of charges whose amount is known."""
        columns = _Columns.of(table)
        kept, held = [], []
        for rows in columns.groups():
            known = columns.known[rows]
            group = columns.group(rows, known)
            replayer = Replayer(group, self.windows)
            held.append(replayer.replay(group.algorithms[0], group.limit, counts=False))
            kept.append(columns.order[rows][known])
        if not kept:
            return _table(TOLD, [])
        found = Held(*(np.concatenate(each) for each in zip(*held, strict=True)))
        taken = table.take(pa.array(np.concatenate(kept)))
        places = _longs(taken, "place").tolist()
        names, files = pa.array(self.names), pa.array(self.files)
        return _table(
            TOLD,
            [
                [_day_of(each) for each in places],
                [_broker_of(each) for each in places],
                [_type_of(each) for each in places],
                *(names.take(taken.column(name).combine_chunks()) for name in ("whose", "shared")),
                taken.column("at_ms"),
                files.take(taken.column("file").combine_chunks()),
                *(taken.column(name) for name in ("src_offset", "position", "limit")),
                *(found.rate, found.wait_ms, ~found.refused),
                taken.column("told_ms"),
            ],
        )


_ARROW: Final = {
    "date": pa.date32(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
}


def _table(schema: str, columns: Sequence[object]) -> pa.Table:
    fields = [each.split(" ") for each in schema.split(", ")]
    types = [_ARROW[kind] for _, kind in fields]
    return pa.table(
        [
            column if isinstance(column, pa.ChunkedArray | pa.Array) else pa.array(column, kind)
            for column, kind in zip(columns or [[]] * len(types), types, strict=True)
        ],
        names=[name for name, _ in fields],
    )


def _longs(table: pa.Table, name: str) -> Longs:
    return np.asarray(table.column(name).to_numpy(), np.int64)


def _doubles(table: pa.Table, name: str) -> Doubles:
    # Nulls become NaN.
    return np.asarray(table.column(name).to_numpy(), np.float64)


def _flags(table: pa.Table) -> Flags:
    return np.asarray(table.column("counts").to_numpy(), np.bool_)
