"""Compiles kernels in advance: ``python -m usage_pipeline.cli.kernels parse replay``.

Compiling takes 20 seconds of one core, once per machine. A command therefore runs this module in a
separate process while Spark starts (``compiling``). The compiled kernels are on the disk, and the
process returns its memory. It compiles by parsing and replaying generated lines and charges.

It prints ``parse`` when the kernels that parse logs are compiled, and ``replay`` for the others.

Example: in a machine's first ``pipeline run``, Spark starts in 7 s, and parsing starts after 10 s.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pyarrow as pa

from usage_pipeline.ingest.log_parts import parse_part, parts_of
from usage_pipeline.ingest.paths import ALL_UTC
from usage_pipeline.ingest.stored_logs import log_files
from usage_pipeline.kernels.charge import CHARGE, Records
from usage_pipeline.replay.entities import EVER, Quota, Quotas
from usage_pipeline.replay.group import Windows
from usage_pipeline.replay.packing import Met, packed
from usage_pipeline.replay.scenarios import IN_FORCE, Scenario
from usage_pipeline.replay.shard import Sweep
from usage_pipeline.replay.slots import SlotsOfClients
from usage_pipeline.sample import Sample, write_sample
from usage_pipeline.tables.schemas import QUOTA_TYPES

_LOG_BYTES: Final = 300_000
_CHARGES: Final = 20


def _parse() -> None:
    with TemporaryDirectory() as folder:
        written = write_sample(Path(folder), Sample(_LOG_BYTES, brokers=1, hours=0.1))
        for part in parts_of(log_files(str(written.request_logs), ALL_UTC), _LOG_BYTES):
            for _ in parse_part(part):
                pass


def _replay() -> None:
    quotas = {quota_type: Quotas(quota_type) for quota_type in QUOTA_TYPES}
    for quotas_of_type in quotas.values():
        quotas_of_type.add("alice", None, Quota("user=alice", 1.0, -EVER, EVER))
    client = pa.RecordBatch.from_pydict(
        {"user": ["alice"], "client_id": ["etl"], "src_file": ["a.log"]}
    )
    rows = packed([client], _charges, SlotsOfClients(quotas), 1)
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


PARTS: Final[Mapping[str, Callable[[], None]]] = {"parse": _parse, "replay": _replay}
"""The parts to compile, in the order in which a run needs them."""


if __name__ == "__main__":
    for part in sys.argv[1:]:
        PARTS[part]()
        print(part, flush=True)
