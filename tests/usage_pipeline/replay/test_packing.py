"""Charges as workers hand them to each other."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.usage_pipeline.kernels.requests import requests
from usage_pipeline.kernels.charge import CHARGE
from usage_pipeline.kernels.places import LINE_BITS
from usage_pipeline.replay import slots as remembered
from usage_pipeline.replay.encoder import request_charges
from usage_pipeline.replay.entities import EVER, Quota, Quotas
from usage_pipeline.replay.packing import NAMES, packed, packed_peaks
from usage_pipeline.replay.shards import Shards
from usage_pipeline.replay.slots import SlotsOfClients
from usage_pipeline.tables.schemas import QUOTA_TYPES

QUOTAS = {quota_type: Quotas(quota_type) for quota_type in QUOTA_TYPES}
QUOTAS["produce"].add("bob", None, Quota("user=bob", 5.0, -EVER, EVER))


def produced(user: str, *places: int, file: str = "a.log") -> pa.RecordBatch:
    """Returns PRODUCE requests at some places of a file."""
    return requests(*({"user": user, "src_file": file, "src_offset": each} for each in places))


def rows(*batches: pa.RecordBatch, shards: int = 1, gathered: int = 1 << 20) -> list[Any]:
    """Returns the rows of PACKED: shard, from when on, and who was charged for which line."""
    found = []
    for batch in packed(batches, request_charges, SlotsOfClients(QUOTAS), Shards(shards), gathered):
        for row in batch.to_pylist():
            names = NAMES.decode(row["names"])
            records = np.frombuffer(row["records"], CHARGE)
            lines = [
                (
                    names.slots[each["slot"]].shared_by,
                    names.files[each["line"] >> LINE_BITS],
                    int(each["line"] % (1 << LINE_BITS)),
                )
                for each in records
            ]
            assert int(records["at_ms"].min()) == row["since_ms"]
            assert len(names.slots) == len({*records["slot"].tolist()})
            found.append((row["shard"], lines))
    return found


def test_what_is_gathered_is_bounded_and_has_its_names() -> None:
    """Each row has the slots and files that its own charges need."""
    batches = [produced("alice", 1, 2), produced("bob", 3, file="b.log"), produced("alice", 4)]
    one, other = rows(*batches, gathered=3)
    assert (
        0,
        [("user=alice", "a.log", 1), ("user=alice", "a.log", 2), ("user=bob", "b.log", 3)],
    ) == one
    assert (0, [("user=alice", "a.log", 4)]) == other
    assert [] == rows(produced("alice").slice(0, 0))


def test_those_who_share_are_in_one_shard() -> None:
    """Whichever worker has charges of theirs, and whomever it met before."""
    batches = [produced(f"user{number}", number) for number in range(50)]
    of_one = {lines[0][0]: shard for shard, lines in rows(*batches, shards=8, gathered=1)}
    of_other = {
        name: shard for shard, lines in rows(*reversed(batches), shards=8) for name, *_ in lines
    }
    assert of_one == of_other
    assert 4 < len(set(of_one.values()))
    peaks = pa.RecordBatch.from_pydict(
        {"quota_type": ["produce"] * 50, "shared_by": list(of_one), "peak": [1.0] * 50}
    )
    place = int(np.frombuffer(_records(batches[0]), CHARGE)["place"][0])
    (found,) = packed_peaks([peaks], [place], Shards(8))
    assert of_one == {
        name: row["shard"]
        for row in found.to_pylist()
        for _, name, _ in NAMES.decode(row["names"]).peaks
    }


def _records(batch: pa.RecordBatch) -> bytes:
    (found,) = packed([batch], request_charges, SlotsOfClients(QUOTAS), Shards(1))
    records: bytes = found["records"][0].as_py()
    return records


@pytest.mark.slow
def test_a_million_clients_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who are forgotten are found again, between two rows and never within one."""
    monkeypatch.setattr(remembered, "_MOST_CLIENTS", 3)
    batches = [produced(f"user{number % 7}", number) for number in range(40)]
    slots = SlotsOfClients(QUOTAS)
    most = 0
    for batch in packed(batches, request_charges, slots, Shards(1), 4):
        most = max(most, len(slots.slots))
        assert batch.num_rows
    assert 7 > most
    whole = [line for _, lines in rows(*batches) for line in lines]
    assert whole == [line for _, lines in rows(*batches, gathered=4) for line in lines]
