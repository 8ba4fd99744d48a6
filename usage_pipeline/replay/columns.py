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

from usage_pipeline.kernels.charge import Records, taken
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
        charges: the records of CHARGE.
        shared: the sharing clients of each charge, which imply the kind.
        known: whether the amount is known.
    """

    slots: Slots
    charges: Records
    shared: Longs
    known: Flags

    @classmethod
    def sort(cls, charges: Records, slots: Slots) -> "Columns":
        """Sort charges (of CHARGE) by group, and by (time, file, offset) in each group."""
        shared = slots.shared[charges["slot"]]
        keys = (charges["place"], shared, charges["at_ms"], charges["line"])
        if not _are_ordered(keys):
            order = np.lexsort(keys[::-1])
            charges, shared = taken(charges, order), shared[order]
        return cls(slots, charges, shared, ~np.isnan(charges["amount"]))

    def groups(self) -> Iterator[slice]:
        """Return the range of each group."""
        if self.charges.size == 0:
            return
        changes = (np.diff(self.charges["place"]) != 0) | (np.diff(self.shared) != 0)
        edges = np.concatenate(([0], np.flatnonzero(changes) + 1, [self.charges.size]))
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield slice(start, end)

    def unknown(self, rows: slice) -> Longs:
        """Return the entities of a group's charges with unknown amounts."""
        whose: Longs = self.slots.whose[self.charges["slot"][rows][~self.known[rows]]]
        return whose

    def known_charges(self, rows: slice) -> Records:
        """Return a group's records with known amounts."""
        charges, known = self.charges[rows], self.known[rows]
        return charges if known.all() else charges[known]

    def group(self, rows: slice) -> Group:
        """Return a group's charges with known amounts."""
        charges = self.known_charges(rows)
        slot, extra = charges["slot"], charges["extra"].copy()
        return Group(
            self.slots.type_of(self.charges["slot"][rows.start]),
            Charges(
                charges["at_ms"].copy(),
                charges["amount"].copy(),
                (extra & 1).astype(np.bool_),
                self.slots.counts[slot],
            ),
            self.slots.limit[slot],
            self.slots.whose[slot],
            extra >> 1,
            extra,
        )


def _are_ordered(keys: Sequence[Longs]) -> bool:
    """Whether rows are in the order of their keys, as a single group's mostly are."""
    is_same: Flags | None = None
    for key in keys:
        is_less = key[1:] < key[:-1]
        if (is_less if is_same is None else is_less & is_same).any():
            return False
        is_equal = key[1:] == key[:-1]
        is_same = is_equal if is_same is None else is_same & is_equal
    return True
