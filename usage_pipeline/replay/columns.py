"""Charges as Spark hands them over, found by group and put in order.

Of a charge (``charge.CHARGE``), ``place`` is a day and a broker, and ``line`` a file and a place in
it, by which ties in time are ordered (``places``); ``slot`` tells the kind, the quota and who
shares it; ``at_ms`` is when and ``amount`` how much, NaN for unknown; and ``extra`` is what only
some kinds have: a mutation's wait and strictness, or an id.

Example: rows of alice's produce quota on brokers 1 and 2 are two groups.
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
    """What charges share, by the numbers of their slots (``slots.Slot``).

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
        shared: of each; it implies the kind too.
        known: whether the amount is.
        extra: what only some kinds have.
        at_ms: when.
        amount: NaN: unknown.
        order: which of the records these are.
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
    def of(cls, charges: Records, slots: Slots) -> "Columns":
        """Charges (of CHARGE) by (time, file, offset) in each group."""
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
        """Where each group is."""
        if self.place.size == 0:
            return
        changes = (np.diff(self.place) != 0) | (np.diff(self.shared) != 0)
        edges = np.concatenate(([0], np.flatnonzero(changes) + 1, [self.place.size]))
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield slice(start, end)

    def unknown(self, rows: slice) -> Longs:
        """The entities of those of a group whose amount is not known."""
        return self.slots.whose[self.slot[rows][~self.known[rows]]]

    def group(self, rows: slice) -> Group:
        """Its charges whose amount is known."""
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
