"""What remembering producer ids costs, and how often it is wrong, at a million ids in blocks.

Ids as a cluster gives them: each broker takes blocks of 1,000 and gives them out in turn, so one
user's ids are parts of many blocks. Both filters of a user are filled with so many ids, which is
the worst that there is; then other ids of the same kind are asked for, neighbours of those seen.
Once with filters made for so many ids, once with those of the settings' defaults, which grow. As
the figure to compare with: one filter hashed by Python's own hash of an int.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from rbloom import Bloom

from benchmarks.harness.machine import quiet_cores
from benchmarks.rows import Row
from sidecar.quotas.producer_ids.id_counts import ProducerIds, ProducerIdSettings
from sidecar.quotas.producer_ids.seen_ids import FilterTerms, Noted, Room, SeenIds

_IDS: Final = 1_000_000
_BLOCK: Final = 1000
_BROKERS: Final = 7
_RATE: Final = 0.01
_WINDOW_MS: Final = 3_600_000
_HALF_MS: Final = _WINDOW_MS // 2
_ROOM_BYTES: Final = 1 << 30


def run() -> list[Row]:
    """Measures both sizes, the plain hash, and the whole path of an id."""
    os.sched_setaffinity(0, {quiet_cores(1)[0]})
    return [
        *_filters("made for them", _IDS),
        *_filters("grown from 1,000", 1000),
        *_plain(),
        *_path(),
    ]


def _ids(first_block: int, count: int = _IDS) -> Iterator[int]:
    """So many ids of every 7th block: another broker's are in between."""
    for block in range(first_block, first_block + count // _BLOCK):
        first = block * _BLOCK * _BROKERS
        yield from range(first, first + _BLOCK)


def _filters(how: str, expected_ids: int) -> list[Row]:
    seen = SeenIds(FilterTerms(_WINDOW_MS, expected_ids, _RATE), Room(_ROOM_BYTES))
    blocks = _IDS // _BLOCK
    began = time.perf_counter()
    new = sum(seen.note(each, 0) is Noted.NEW for each in _ids(0))
    noted_us = 1e6 * (time.perf_counter() - began) / _IDS
    for each in _ids(blocks):
        seen.note(each, _HALF_MS + 1)
    wrong = _wrong(seen.__contains__, after=2)
    what = f"{_IDS:,} producer ids in each filter, {how}"
    # What was not new was taken for seen while the first filter filled.
    return [
        Row(f"{what}: memory of a user", seen.bytes / 1e6, "MB"),
        Row(f"{what}: for each id", 8 * seen.bytes / (2 * _IDS), "bits"),
        Row(f"{what}: missed while filling", 100 * (1 - new / _IDS), "%", 100 * _RATE),
        Row(f"{what}: false positives when full", wrong, "%", 100 * _RATE),
        Row(f"{what}: noting one", noted_us, "µs"),
    ]


def _plain() -> list[Row]:
    """One filter as rbloom makes it, made for all of the rate that both of ours have together."""
    bloom = Bloom(_IDS, _RATE)
    for each in _ids(0):
        bloom.add(each)
    what = f"{_IDS:,} producer ids in one filter by Python's hash"
    return [Row(f"{what}: false positives", _wrong(bloom.__contains__, after=1), "%")]


def _wrong(contains: Callable[[int], bool], after: int) -> float:
    """Percent of ids that were not noted: of the blocks after those of so many filters."""
    return 100 * sum(map(contains, _ids(after * _IDS // _BLOCK))) / _IDS


def _path() -> list[Row]:
    """What an id costs in limits, filters, rate and bucket, and what a small user takes."""
    users = 1000
    ids = ProducerIds(ProducerIdSettings())
    ids.set_limits({f"user-{number}": 50.0 for number in range(users)})
    names = [f"user-{number}" for number in range(users)]
    began = time.perf_counter()
    for producer_id in range(100):
        for name in names:
            ids.record(name, producer_id, producer_id)
    recorded_us = 1e6 * (time.perf_counter() - began) / (100 * users)
    assert ids.users == users
    return [
        Row("counting a new producer id, 1,000 users", recorded_us, "µs"),
        Row("filters of a user with up to 1,000 ids", ids.filter_bytes / users, "bytes"),
    ]
