"""Compiles the replay's kernels in advance: ``python -m usage_pipeline.cli.kernels``.

Compiling takes some seconds of one core, once per machine. A command therefore runs this module in
a separate process while Spark starts and reads logs (``compiling``). The compiled kernels are on
the disk, and the process returns its memory.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.charge import CHARGE, Records
from usage_pipeline.replay.entities import EVER, Quota, Quotas
from usage_pipeline.replay.group import Windows
from usage_pipeline.replay.packing import Met, packed
from usage_pipeline.replay.scenarios import IN_FORCE, Scenario
from usage_pipeline.replay.shard import Sweep
from usage_pipeline.replay.shards import Shards
from usage_pipeline.replay.slots import SlotsOfClients
from usage_pipeline.tables.schemas import QUOTA_TYPES

_CHARGES: Final = 20


def compile_all() -> None:
    """Compiles the kernels by replaying generated charges."""
    quotas = {quota_type: Quotas(quota_type) for quota_type in QUOTA_TYPES}
    for quotas_of_type in quotas.values():
        quotas_of_type.add("alice", None, Quota("user=alice", 1.0, -EVER, EVER))
    client = pa.RecordBatch.from_pydict(
        {"user": ["alice"], "client_id": ["etl"], "src_file": ["a.log"]}
    )
    rows = packed([client], _charges, SlotsOfClients(quotas), Shards(1))
    for _ in Sweep(Windows(), (IN_FORCE, Scenario("=2", quota=2.0))).rows(rows):
        pass


def _charges(batch: pa.RecordBatch, met: Met) -> Records:
    """Return charges of each kind, at the same times."""
    kind, at = np.divmod(np.arange(_CHARGES * len(QUOTA_TYPES)), _CHARGES)
    records = np.zeros(kind.size, CHARGE)
    records["slot"] = met.slots.slot_numbers(batch, np.zeros_like(kind), kind, at)
    records["at_ms"] = at * 100
    records["amount"] = 1.0
    records["line"] = at
    met.files_of(batch)
    return records


if __name__ == "__main__":
    compile_all()
