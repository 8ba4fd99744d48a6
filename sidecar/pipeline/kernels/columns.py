"""Charges as Spark hands them over, found by group and put in order.

A charge's columns are few, since each costs as much to hand over as to replay: its ``place``, a day
and a broker in one number; its ``slot``, which tells the kind, the quota and who shares it; its
``line``, a file and a place in it, by which ties in time are ordered; ``at_ms`` and ``amount``; and
``extra``, what only some kinds have.

Example: rows of alice's produce quota on brokers 1 and 2 are two groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels.group import Group
from sidecar.pipeline.kernels.values import Charges, Doubles, Flags, Longs
from sidecar.pipeline.sweep import QUOTA_TYPES

BROKER_BITS: Final = 31
"""Of a place; above them is the day."""
LINE_BITS: Final = 44
"""Of a line: 16 TB; above them is the file's number."""
_EPOCH: Final = date(1970, 1, 1)


def broker_of(place: int) -> int:
    """Whose charges they are."""
    return place & ((1 << BROKER_BITS) - 1)


def day_of(place: int) -> date:
    """On which day."""
    return _EPOCH + timedelta(days=place >> BROKER_BITS)


@dataclass(frozen=True, slots=True)
class Slots:
    """What charges share: a client's quota of a kind for a while is a slot.

    Attributes:
        names: of entities and of who shares a quota, by their numbers.
        kind: of each slot, a place in QUOTA_TYPES.
        shared: the number of who shares it.
        whose: the number of whose quota it is.
        limit: NaN for none.
        counts: whether anybody has a quota of this kind.
    """

    names: Sequence[str]
    kind: Longs
    shared: Longs
    whose: Longs
    limit: Doubles
    counts: Flags

    def type_of(self, slot: int) -> str:
        """The kind of quota."""
        return QUOTA_TYPES[int(self.kind[slot])]


@dataclass(frozen=True, slots=True)
class Columns:
    """Charges in the order of their groups, each in its own order.

    Attributes:
        slots: that they are of.
        place: day and broker.
        slot: of each.
        shared: of each; it tells the kind too.
        known: whether the amount is.
        extra: what only some kinds have.
        at_ms: when.
        amount: NaN: unknown.
        order: the rows of the table that these are.
    """

    slots: Slots
    place: Longs
    slot: Longs
    shared: Longs
    known: Flags
    extra: Longs
    at_ms: Longs
    amount: Doubles
    order: Longs

    @classmethod
    def of(cls, table: pa.Table, slots: Slots) -> "Columns":
        """The rows of a table, by (time, file, offset) in each group."""
        place, slot, at_ms = (longs(table, name) for name in ("place", "slot", "at_ms"))
        shared = slots.shared[slot]
        order = np.lexsort((longs(table, "line"), at_ms, shared, place))
        amount = np.asarray(table.column("amount").to_numpy(), np.float64)[order]
        return cls(
            slots,
            place[order],
            slot[order],
            shared[order],
            ~np.isnan(amount),
            longs(table, "extra")[order],
            at_ms[order],
            amount,
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

    def group(self, rows: slice) -> Group:
        """Its charges whose amount is known."""
        known = self.known[rows]
        slot = self.slot[rows][known]
        extra = self.extra[rows][known]
        quota_type = self.slots.type_of(self.slot[rows.start])
        is_mutation = quota_type == "controller_mutation"
        return Group(
            quota_type,
            int(self.shared[rows.start]),
            Charges(
                self.at_ms[rows][known],
                self.amount[rows][known],
                (extra & 1).astype(np.bool_),
                self.slots.counts[slot],
            ),
            self.slots.limit[slot],
            self.slots.whose[slot],
            extra >> 1 if is_mutation else np.zeros_like(extra),
            extra,
        )


def longs(table: pa.Table, name: str) -> Longs:
    """A column of whole numbers."""
    return np.asarray(table.column(name).to_numpy(), np.int64)
