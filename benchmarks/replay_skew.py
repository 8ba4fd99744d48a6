"""How much longer a replay's largest task takes if one tenant has 40 % of a broker's requests.

A day of three brokers is packed as a replay's workers do it: into 64 shards and those of the large
groups. Each shard is then replayed in this process; Spark runs a task for each. Times are the
processor's, so that who else wants the core doesn't count, and Spark's own time for a task is not
among them. The shortest of five is taken, since a busy machine also takes caches away. 200 tenants
have the other requests.
"""

import time
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.rows import Row
from usage_pipeline.kernels.charge import CHARGE, Records, key_of
from usage_pipeline.kernels.places import BROKER_BITS
from usage_pipeline.replay.entities import EVER, Quota, Quotas
from usage_pipeline.replay.group import Windows
from usage_pipeline.replay.packing import IN_ORDER, Met, packed
from usage_pipeline.replay.scenarios import IN_FORCE, Scenario
from usage_pipeline.replay.shard import Sweep
from usage_pipeline.replay.shards import Shards
from usage_pipeline.replay.slots import SlotsOfClients, hash_of
from usage_pipeline.silver.quota_config import DEFAULT
from usage_pipeline.tables.schemas import QUOTA_TYPES

_SHARDS: Final = 64
_BROKERS: Final = 3
_REQUESTS: Final = 600_000
_HOURS: Final = 24
_TENANTS: Final = 200
_SHARE: Final = 0.4
_PRODUCES: Final = 0.6
_CANDIDATES: Final = 20
_TARGET: Final = 2.0
_TIMES: Final = 5
_PRODUCE, _FETCH, _REQUEST = map(QUOTA_TYPES.index, ("produce", "fetch", "request"))
_HOUR_MS: Final = 3_600_000
_DAY: Final = 20_000


def run() -> list[Row]:
    """Replays the quotas in force, then with 20 candidates more."""
    candidates = [Scenario(f"x{part / 10}", factor=part / 10) for part in range(1, _CANDIDATES + 1)]
    rows = []
    for name, scenarios in (("one quota", []), (f"{_CANDIDATES} more", candidates)):
        shards = _shards(1 + len(scenarios))
        sweep = Sweep(Windows(), (IN_FORCE, *scenarios), shards=shards)
        packed_shards = _packed_shards(shards)
        _replay(sweep, packed_shards[0])
        took = [min(_replay(sweep, shard) for _ in range(_TIMES)) for shard in packed_shards]
        remark = f"{max(took):.2g} s; {_REQUESTS:,} requests a broker"
        ratio = max(took) / median(took)
        rows.append(
            Row(f"largest task of a replay, {name}", ratio, "medians", _TARGET, remark=remark)
        )
    return rows


def _shards(scenarios: int) -> Shards:
    """The shards as ``shards_of`` makes them: the busy tenant has the only large groups."""
    requests = round(_REQUESTS * _SHARE)
    produces = round(requests * _PRODUCES)
    sizes = {}
    for kind, charges in (
        (_PRODUCE, produces),
        (_FETCH, requests - produces),
        (_REQUEST, requests),
    ):
        hashes = np.array([hash_of(kind, "user=tenant-0")], np.int64)
        key = key_of((np.array([_DAY << BROKER_BITS]), hashes)).view(np.int64)
        sizes[int(key[0])] = charges
    return Shards.apart(_SHARDS, sizes, 2 * _BROKERS * _REQUESTS, scenarios)


def _packed_shards(shards: Shards) -> list[pa.Table]:
    quotas = {quota_type: Quotas(quota_type) for quota_type in QUOTA_TYPES}
    for each in quotas.values():
        each.add(DEFAULT, None, Quota(f"user={DEFAULT}", 1e6, -EVER, EVER))
    users = [f"tenant-{number}" for number in range(_TENANTS + 1)]
    clients = pa.RecordBatch.from_pydict(
        {"user": users, "client_id": users, "src_file": ["a.log"] * len(users)}
    )
    rng = np.random.default_rng(1)
    rows = [
        row
        for broker in range(_BROKERS)
        for hour in range(_HOURS)
        for row in packed(
            [clients], partial(_charges, rng, broker, hour), SlotsOfClients(quotas), shards
        )
    ]
    table = pa.Table.from_batches(rows).sort_by([(name, "ascending") for name in IN_ORDER])
    shard = table["shard"].to_numpy()
    return [table.filter(pa.array(shard == each)) for each in np.unique(shard)]


def _charges(
    rng: np.random.Generator, broker: int, hour: int, clients: pa.RecordBatch, met: Met
) -> Records:
    """An hour's requests of a broker: the charge of the bytes and that of the time of each."""
    count = _REQUESTS // _HOURS
    tenant = rng.integers(1, _TENANTS + 1, count)
    if broker == 0:
        tenant[rng.random(count) < _SHARE] = 0
    kind = np.where(rng.random(count) < _PRODUCES, _PRODUCE, _FETCH)
    at_ms = (_DAY * 24 + hour) * _HOUR_MS + np.sort(rng.integers(0, _HOUR_MS, count))
    records = np.zeros(2 * count, CHARGE)
    row, at_ms = np.repeat(tenant, 2), np.repeat(at_ms, 2)
    kinds = np.stack([kind, np.full(count, _REQUEST)], axis=1).ravel()
    records["slot"] = met.slots.slot_numbers(clients, row, kinds, at_ms)
    records["place"] = _DAY << BROKER_BITS | broker
    records["at_ms"] = at_ms
    records["amount"] = np.where(kinds == _REQUEST, 0.1, rng.integers(1, 1 << 16, 2 * count))
    records["line"] = np.arange(2 * count) + hour * 2 * count
    met.files_of(clients)
    return records


def _replay(sweep: Sweep, shard: pa.Table) -> float:
    """The processor's time, in seconds."""
    began = time.process_time()
    rows: Iterator[pa.RecordBatch] = sweep.rows(iter(shard.to_batches(max_chunksize=1)))
    for _ in rows:
        pass
    return time.process_time() - began
