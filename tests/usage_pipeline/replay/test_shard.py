"""Groups of charges as their worker gets them, and compared with quotas: in parts, or at once."""

import math
import random
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.examples import mostly_slow
from usage_pipeline.kernels import charge
from usage_pipeline.kernels.charge import CHARGE, Records
from usage_pipeline.kernels.places import BROKER_BITS, LINE_BITS
from usage_pipeline.kernels.values import Span
from usage_pipeline.replay import packing
from usage_pipeline.replay.group import Windows
from usage_pipeline.replay.packing import IN_ORDER, Names, packed_peaks
from usage_pipeline.replay.scenarios import IN_FORCE, Scenario
from usage_pipeline.replay.shard import Comparison, Sweep
from usage_pipeline.replay.shards import Shards
from usage_pipeline.replay.slots import Slot, hash_of
from usage_pipeline.tables.schemas import QUOTA_TYPES

ALICE = Slot(0, "user=alice", "user=alice", 100.0, counts=True)
PLACE = 1 << BROKER_BITS
"""The second day of 1970; a broker is added."""


def charges(*rows: tuple[int, int, float], slot: Sequence[int] = ()) -> Records:
    """Returns charges of a broker, at a time, of so many bytes."""
    records = np.zeros(len(rows), CHARGE)
    records["place"] = [PLACE | broker for broker, _, _ in rows]
    records["line"] = range(len(rows))
    records["at_ms"] = [at_ms for _, at_ms, _ in rows]
    records["amount"] = [amount for _, _, amount in rows]
    records["slot"] = slot or 0
    return records


def row(records: Records, names: Names, shard: int = 0) -> pa.RecordBatch:
    """Returns a row of PACKED."""
    since_ms = int(records["at_ms"].min()) if records.size else packing.FIRST_MS
    return packing._batch([(shard, since_ms, names, records.tobytes())])


def alices(*rows: tuple[int, int, float], shard: int = 0) -> pa.RecordBatch:
    return row(charges(*rows), Names([ALICE], ["a.log"]), shard)


def in_order(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Returns rows as Spark hands them over."""
    table = pa.Table.from_batches(batches).sort_by([(name, "ascending") for name in IN_ORDER])
    found: list[pa.RecordBatch] = table.to_batches(max_chunksize=3)
    return found


def swept(sweep: Sweep, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
    found = [row for batch in sweep.rows(iter(in_order(batches))) for row in batch.to_pylist()]
    key = ("dt", "broker", "quota_type", "shared_by", "entity", "algorithm", "scenario")
    return sorted(found, key=lambda each: [str(each[name]) for name in key])


def test_brokers_are_groups_and_scenarios_are_rows() -> None:
    """Each broker's 1,500 bytes wait 5 s for themselves, and nothing at twice the quota."""
    sweep = Sweep(Windows(), (IN_FORCE, Scenario("x2", factor=2.0)))
    rows = swept(sweep, alices((7, 0, 1500.0), (8, 0, 1500.0), (8, 1, math.nan)))
    assert [
        (date(1970, 1, 2), 7, "in force", 1, 5000, 0),
        (date(1970, 1, 2), 7, "x2", 1, 0, 0),
        (date(1970, 1, 2), 8, "in force", 1, 5000, 1),
        (date(1970, 1, 2), 8, "x2", 1, 0, 1),
    ] == [
        (r["dt"], r["broker"], r["scenario"], r["events"], r["throttle_ms_max"], r["unknown"])
        for r in rows
    ]


def test_shards_that_come_together_are_apart() -> None:
    """A worker gets several, one after the other; slots and files are numbered in each row."""
    bob = Slot(0, "user=bob", "user=bob", 1000.0, counts=True)
    rows = swept(
        Sweep(Windows(), (IN_FORCE,)),
        alices((7, 0, 1500.0)),
        alices((7, 0, 1500.0), shard=1),
        row(charges((7, 5, 1500.0), (7, 5, 1.0), slot=[1, 0]), Names([ALICE, bob], ["b.log"]), 1),
    )
    assert [("user=alice", 1), ("user=alice", 2), ("user=bob", 1)] == [
        (r["entity"], r["events"]) for r in rows
    ]


def test_ties_are_in_the_order_of_files_names() -> None:
    """Whatever order the rows came in that have them: of two fetches the first one passes."""
    slot = Slot(1, "user=alice", "user=alice", 100.0, counts=True)
    comparison = Comparison(Windows())
    rows = []
    for amount, file, offset in ((900.0, "b.log", 5), (200.0, "a.log", 3)):
        records = charges((7, 0, amount))
        records["line"] = offset
        rows.append(row(records, Names([slot], [file])))
    late, early = rows
    for batches in ([late, early], [early, late]):
        (found,) = comparison.rows(iter(batches))
        assert [("a.log", 3, 0), ("b.log", 5, 1000)] == [
            (each["src_file"], each["src_offset"], each["throttle_ms"])
            for each in found.to_pylist()
        ]


def test_candidates_go_up_to_the_peak() -> None:
    """Of those who share the quota in the shard; who has none is replayed in force alone."""
    bob = Slot(0, "user=bob", "user=bob", None, counts=True)
    peaks = pa.RecordBatch.from_pydict(
        {"quota_type": ["produce", "fetch"], "shared_by": ["user=alice"] * 2, "peak": [1e3, 5.0]}
    )
    rows = swept(
        Sweep(Windows(), (IN_FORCE,), 3),
        *packed_peaks([peaks], [PLACE | 7, PLACE | 8], Shards(1)),
        row(charges((7, 0, 1500.0), (8, 0, 1500.0), slot=[0, 1]), Names([ALICE, bob], ["a.log"])),
    )
    assert [("user=alice", each) for each in ("=2020", "=21", "=441", "=96.2", "in force")] == [
        (r["entity"], r["scenario"]) for r in rows if r["broker"] == 7
    ]
    assert [("user=bob", "in force")] == [
        (r["entity"], r["scenario"]) for r in rows if r["broker"] == 8
    ]


def test_an_unknown_amount_is_not_compared() -> None:
    """There is no row even when no amount is known."""
    comparison = Comparison(Windows())

    def compared(*rows: tuple[int, int, float]) -> list[dict[str, Any]]:
        found = comparison.rows(iter([alices(*rows)]))
        return [row for batch in found for row in batch.to_pylist()]

    assert [(7, "user=alice", "a.log", 1, 5000)] == [
        (r["broker"], r["shared_by"], r["src_file"], r["src_offset"], r["throttle_ms"])
        for r in compared((7, 0, math.nan), (7, 5, 1500.0))
    ]
    assert [] == compared((7, 0, math.nan))


WINDOWS = Windows(ids=Span(2, 3000))
TRIED = (
    IN_FORCE,
    Scenario("x2", factor=2.0),
    Scenario("=60", quota=60.0),
    Scenario("=9", quota=9.0, quota_type="controller_mutation"),
    Scenario("=30", quota=30.0, quota_type="produce", entity="user=<default>"),
    Scenario("=70", quota=70.0, quota_type="fetch", entity="user=alice"),
    Scenario("=80", quota=80.0, quota_type="fetch", entity="nobody"),
)
LIMITS = {"producer_ids": 5.0, "controller_mutation": 4.0}


def made_up(chance: random.Random, rows: int, each: int) -> list[pa.RecordBatch]:
    """Draws rows of charges that overlap in time, of quotas that are set, changed and removed."""
    batches = []
    for number in range(rows):
        records = np.zeros(each, CHARGE)
        slots: list[Slot] = []
        for at in range(each):
            kind = chance.randrange(len(QUOTA_TYPES))
            at_ms = number * 2000 + chance.randrange(0, 6000, 20)
            who = chance.choice(["alice", "alice", "alice", "bob"])
            # What is in force follows from the time, as it does with clients' slots.
            era = min(2, at_ms // 9000)
            limit = LIMITS.get(QUOTA_TYPES[kind], 90.0)
            entity = f"user={who}" if era != 1 else "user=<default>"
            slot = Slot(kind, f"user={who}", entity, None if era == 0 else limit, counts=era > 0)
            if slot not in slots:
                slots.append(slot)
            records[at] = (
                *(PLACE | chance.choice([7, 7, 8]), slots.index(slot), 0, at_ms),
                (chance.randrange(2) << LINE_BITS) | (number * each + at),
                chance.choice([math.nan, *map(float, range(1, 40))]),
                *(chance.randrange(30), 0),
            )
        batches.append(row(records, Names(slots, [f"{number % 3}.log", "z.log"])))
    return batches


@pytest.mark.parametrize("seed", mostly_slow(range(5)))
def test_a_group_that_comes_in_parts_is_replayed_as_at_once(seed: int) -> None:
    """Every kind, with quotas that change between parts and scenarios that begin to matter."""
    batches = made_up(random.Random(seed), 12, 100)
    at_once = swept(Sweep(WINDOWS, TRIED), *batches)
    assert 7 == len({each["scenario"] for each in at_once} - {"=80"}) + 1
    assert sum(each["throttled"] for each in at_once) > 100
    for most in (1, 150, 700):
        assert at_once == swept(Sweep(WINDOWS, TRIED, most_retained=most), *batches)


@pytest.mark.slow
@pytest.mark.parametrize("copies", mostly_slow([3, 1, 20]))
def test_a_large_group_is_replayed_in_its_own_shards_as_with_others(copies: int) -> None:
    """Groups of each kind; a row is as in one shard, to the last bit, and is there once."""
    batches = made_up(random.Random(7), 12, 100)
    place = np.full(len(QUOTA_TYPES), PLACE | 7)
    hashes = np.array([hash_of(kind, "user=alice") for kind in range(place.size)], np.int64)
    keys = charge.key_of((place, hashes)).view(np.int64).tolist()
    shards = Shards.apart(2, dict.fromkeys(keys, 30 * copies), 2 * 10, 1000)
    apart = list(map(in_shards, batches, [shards] * len(batches)))
    assert 1 + copies * place.size == len({row["shard"] for b in apart for row in b.to_pylist()})
    together = swept(Sweep(WINDOWS, TRIED), *batches)
    assert together == swept(Sweep(WINDOWS, TRIED, shards=shards), *apart)
    assert together == swept(Sweep(WINDOWS, TRIED, shards=shards, most_retained=100), *apart)


def in_shards(batch: pa.RecordBatch, shards: Shards) -> pa.RecordBatch:
    """Returns the charges of a row of PACKED as workers pack them for these shards."""
    (packed_row,) = batch.to_pylist()
    names = packing.NAMES.decode(packed_row["names"])
    records = np.frombuffer(packed_row["records"], CHARGE)
    of_slots = np.array([hash_of(each.kind, each.shared_by) for each in names.slots], np.int64)
    shard = shards.of(records["place"], of_slots[records["slot"]])
    return packing._batch(
        [
            (copy, int(own["at_ms"].min()), names, own.tobytes())
            for at, own in charge.by_shard(records, shard, shards.count)
            for copy in shards.copies_of(at)
        ]
    )


def test_a_group_is_replayed_in_pieces_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pieces fit the processor's cache."""
    batches = made_up(random.Random(8), 6, 100)
    at_once = swept(Sweep(WINDOWS, TRIED), *batches)
    monkeypatch.setattr("usage_pipeline.replay.shard._PIECE", 7)
    assert at_once == swept(Sweep(WINDOWS, TRIED), *batches)


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant with most of the charges does not fill the memory; the small ones wait."""
    sizes: list[int] = []
    joined = charge.joined

    def noted(pieces: Sequence[Records]) -> Records:
        sizes.append(sum(each.size for each in pieces))
        return joined(pieces)

    monkeypatch.setattr("usage_pipeline.replay.shard.joined", noted)
    batches = [
        alices(*((7, 1000 * number + at, 1.0) for at in range(100)), (8, 1000 * number, 1.0))
        for number in range(100)
    ]
    rows = swept(Sweep(Windows(), (IN_FORCE,), most_retained=500), *batches)
    assert [(7, 10_000), (8, 100)] == [(r["broker"], r["events"]) for r in rows]
    assert 15 < len(sizes)
    assert 700 > max(sizes)
