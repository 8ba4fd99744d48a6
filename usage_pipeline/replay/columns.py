"""Charges from Spark, grouped and sorted.

A charge (``charge.CHARGE``) has these fields. ``place`` is a day and a broker. ``line`` is a file
and a position in it, which orders charges of the same time (``places``). ``slot`` is the kind, the
quota and the clients that share it. ``at_ms`` is the time. ``amount`` is NaN if it is unknown.
``extra`` is a mutation's wait and strictness, or an id.

Example: charges to alice's produce quota on brokers 1 and 2 are two groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from usage_pipeline.kernels.charge import Records
from usage_pipeline.kernels.values import Charges, Doubles, Flags, Longs
from usage_pipeline.replay.group import Group
from usage_pipeline.tables.schemas import QUOTA_TYPES


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of charges, as columns (``slots.Slot``).

    Attributes:
        names: the names of entities and of sharing clients, by number.
        kind: the kind of each slot, as an index of QUOTA_TYPES.
        shared: the number of the clients that share the quota.
        whose: the number of the quota's entity.
        limit: the limit, NaN for none.
        counts: whether any quota of this kind exists.
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
    """Charges in the order of their groups, sorted within each group.

    Attributes:
        slots: their slots.
        place: the day and broker of each charge.
        slot: the slot of each charge.
        shared: the sharing clients of each charge, which imply the kind.
        known: whether the amount is known.
        extra: the field for some kinds.
        at_ms: the time.
        amount: the amount, NaN if it is unknown.
        order: the index of each charge in the records.
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
    def sort(cls, charges: Records, slots: Slots) -> "Columns":
        """Sort charges (of CHARGE) by group, and by (time, file, offset) in each group."""
        shared = slots.shared[charges["slot"]]
        order = np.lexsort((charges["line"], charges["at_ms"], shared, charges["place"]))
        amount = charges["amount"][order]
        return cls(
            slots,
            charges["place"][order],
            charges["slot"][order].astype(np.int64),
            shared[order],
            ~np.isnan(amount),
            charges["extra"][order],
            charges["at_ms"][order],
            amount,
            order,
        )

    def groups(self) -> Iterator[slice]:
        """Return the range of each group."""
        if self.place.size == 0:
            return
        changes = (np.diff(self.place) != 0) | (np.diff(self.shared) != 0)
        edges = np.concatenate(([0], np.flatnonzero(changes) + 1, [self.place.size]))
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield slice(start, end)

    def unknown(self, rows: slice) -> Longs:
        """Return the entities of a group's charges with unknown amounts."""
        return self.slots.whose[self.slot[rows][~self.known[rows]]]

    def group(self, rows: slice) -> Group:
        """Return a group's charges with known amounts."""
        known = self.known[rows]
        slot = self.slot[rows][known]
        extra = self.extra[rows][known]
        quota_type = self.slots.type_of(self.slot[rows.start])
        is_mutation = quota_type == "controller_mutation"
        return Group(
            quota_type,
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
