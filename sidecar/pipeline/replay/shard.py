"""What a worker of Spark does with the charges of many groups: records in, Arrow out.

Example: 1,000 charges of alice's produce quota on brokers 1 and 2 are two groups, and with two
scenarios four rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels.charge import Records
from sidecar.pipeline.kernels.places import LINE_BITS, broker_of, day_of
from sidecar.pipeline.kernels.tally import Sums, tally
from sidecar.pipeline.kernels.values import ChargeResults, Longs
from sidecar.pipeline.replay.columns import Columns, Slots
from sidecar.pipeline.replay.group import BURST_SPREADING, Replayer, Windows, applied
from sidecar.pipeline.replay.scenarios import Scenario

_GROUP: Final = "dt date, broker int, quota_type string, entity string, shared_by string"
SUMMED: Final = (
    f"{_GROUP}, algorithm string, scenario string, quota double,"
    " events bigint, throttled bigint, throttle_ms_total bigint, throttle_ms_max bigint,"
    " near bigint, over bigint, peak_rate double, unknown bigint"
)
"""The rows of ``Sweep``."""
COMPARED: Final = (
    f"{_GROUP}, at_ms bigint, src_file string, src_offset bigint, position int,"
    " limit double, rate double, throttle_ms bigint, accepted boolean, told_ms bigint"
)
"""The rows of ``Comparison``."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Sums for each group, entity and scenario; ``special`` ones are about one name's number."""

    windows: Windows
    slots: Slots
    general: tuple[Scenario, ...]
    special: Mapping[int, tuple[Scenario, ...]] = field(default_factory=dict)

    def rows(self, charges: Records) -> pa.Table:
        """The rows of ``SUMMED``."""
        columns = Columns.of(charges, self.slots)
        rows = [row for each in columns.groups() for row in self._rows(columns, each)]
        return _table(SUMMED, list(zip(*rows, strict=True)))

    def _rows(self, columns: Columns, rows: slice) -> Iterator[tuple[object, ...]]:
        known = columns.known[rows]
        group = columns.group(rows)
        place = int(columns.place[rows.start])
        whose, entity = np.unique(self.slots.whose[columns.slot[rows]], return_inverse=True)
        unknown = np.bincount(entity[~known], minlength=whose.size)
        replayer = Replayer(group, self.windows)
        for scenario, limit in applied(group, self._scenarios(group.shared, whose)):
            for algorithm in group.algorithms:
                results = replayer.replay(algorithm, limit, counts=scenario.quota is not None)
                sums = Sums.none(whose.size)
                tally(entity[known], results, limit, algorithm == BURST_SPREADING, sums)
                for at, one in enumerate(whose.tolist()):
                    quota = float(sums.last[at])
                    yield (
                        *(day_of(place), broker_of(place), group.quota_type),
                        *(self.slots.names[one], self.slots.names[group.shared]),
                        *(algorithm, scenario.name, None if np.isnan(quota) else quota),
                        *sums.counts[at].tolist(),
                        *(float(sums.peaks[at]), int(unknown[at])),
                    )

    def _scenarios(self, shared: int, whose: Longs) -> tuple[tuple[Scenario, int | None], ...]:
        general = tuple((each, None) for each in self.general)
        numbers = dict.fromkeys((shared, *whose.tolist()))
        return general + tuple((each, one) for one in numbers for each in self.special.get(one, ()))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the quotas in force did with each charge."""

    windows: Windows
    slots: Slots
    files: Sequence[str]

    def rows(self, charges: Records) -> pa.Table:
        """The rows of ``COMPARED``; of charges whose amount is known."""
        columns = Columns.of(charges, self.slots)
        kept, results = [], []
        for rows in columns.groups():
            group = columns.group(rows)
            replayer = Replayer(group, self.windows)
            results.append(replayer.replay(group.algorithms[0], group.limit, counts=False))
            kept.append(columns.order[rows][columns.known[rows]])
        if not kept:
            return _table(COMPARED, [])
        found = ChargeResults(*(np.concatenate(each) for each in zip(*results, strict=True)))
        return _table(COMPARED, self._columns(charges[np.concatenate(kept)], found))

    def _columns(self, charges: Records, found: ChargeResults) -> list[object]:
        places, slot, line = charges["place"].tolist(), charges["slot"], charges["line"]
        names, files = pa.array(self.slots.names), pa.array(self.files)
        limit = self.slots.limit[slot]
        return [
            [day_of(each) for each in places],
            [broker_of(each) for each in places],
            [self.slots.type_of(each) for each in slot.tolist()],
            names.take(pa.array(self.slots.whose[slot])),
            names.take(pa.array(self.slots.shared[slot])),
            charges["at_ms"],
            files.take(pa.array(line >> LINE_BITS)),
            (line & ((1 << LINE_BITS) - 1)) - charges["position"],
            charges["position"],
            pa.array(limit, mask=np.isnan(limit)),
            *(found.rate, found.wait_ms, ~found.refused),
            charges["told_ms"],
        ]


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
