"""Computes the bytes of a line's request, as ``produce_size`` and ``fetch_size`` do.

Both add up parts whose sizes depend on the version, so sums that do not depend on it are enough.

Example: client-id "etl" sends a PRODUCE of version 11 with 10,000 bytes for one partition of "t1":
10 + 3 + 1 for its header, 6 + 1 + 1 + 1 for its body, 2 + 1 + 1 for the topic, 10,000 + 5 + 2 for
the partition, 1 for the topic's tags: 10,035 bytes.

Source: as ``produce_size`` and ``fetch_size``, which the tests compare it with.
"""

from typing import Final

from sidecar.requestlog.exempt import FETCH, PRODUCE
from sidecar.requestlog.request_detail import INIT_PRODUCER_ID
from usage_pipeline.kernels.compiled import merged
from usage_pipeline.kernels.fetch_size import NEWEST_FETCH
from usage_pipeline.kernels.line_fields import APIS, EXEMPT, NONE, Slot
from usage_pipeline.kernels.produce_size import NEWEST_PRODUCE
from usage_pipeline.kernels.values import Longs

_PRODUCE_FLEXIBLE_SINCE: Final = 9
_FETCH_FLEXIBLE_SINCE: Final = 12
_IDS_SINCE: Final = 13
_ID: Final = 16


@merged
def length_bytes(length: int) -> int:
    """Return the number of bytes of an unsigned variable-length integer."""
    taken = 1
    while length > 127:
        length >>= 7
        taken += 1
    return taken


@merged
def fill_sizes(row: Longs) -> None:
    """Fill the derived values of a line's row."""
    key = row[Slot.API_KEY]
    row[Slot.THROTTLE] = max(row[Slot.THROTTLE], row[Slot.ANSWER_THROTTLE])
    allocated = row[Slot.ERROR] == 0 and row[Slot.PRODUCER_ID] >= 0
    if key != INIT_PRODUCER_ID or not allocated:
        row[Slot.PRODUCER_ID] = NONE
    if key == PRODUCE:
        row[Slot.EXEMPT] = row[Slot.ACKS] == 0
        row[Slot.RECORDS_BYTES] = row[Slot.RECORDS]
        row[Slot.BYTES_KNOWN] = 0 <= row[Slot.VERSION] <= NEWEST_PRODUCE
        if row[Slot.BYTES_KNOWN]:
            row[Slot.QUOTA_BYTES] = _produce_bytes(row, row[Slot.VERSION])
    elif key == FETCH:
        replica = row[Slot.REPLICA]
        is_follower = (row[Slot.STATE_REPLICA] if replica == -1 else replica) >= 0
        row[Slot.IS_FOLLOWER] = row[Slot.EXEMPT] = is_follower
        has_sizes = row[Slot.ANSWERED] != 0 and not (
            row[Slot.TOPICS] == 0 and row[Slot.THROTTLE] > 0
        )
        if has_sizes:
            row[Slot.RECORDS_BYTES] = row[Slot.RECORDS]
        if not is_follower:
            row[Slot.BYTES_KNOWN] = has_sizes and 0 <= row[Slot.VERSION] <= NEWEST_FETCH
            if row[Slot.BYTES_KNOWN]:
                row[Slot.QUOTA_BYTES] = _fetch_bytes(row, row[Slot.VERSION])
    else:
        row[Slot.EXEMPT] = EXEMPT[min(key, APIS), row[Slot.FORWARDED]]


@merged
def _produce_bytes(row: Longs, version: int) -> int:
    is_flexible = version >= _PRODUCE_FLEXIBLE_SINCE
    tags = 1 if is_flexible else 0
    size: int = 10 + _length(row, Slot.CLIENT_ID) + tags
    size += 6 + tags
    if version >= 3:
        length = _length(row, Slot.TRANSACTION)
        size += length + (length_bytes(length + 1) if is_flexible else 2)
    size += _topics(row, version, is_flexible)
    each, lengths = (5, row[Slot.RECORDS_LENGTHS]) if is_flexible else (8, 0)
    size += row[Slot.RECORDS] + lengths + each * row[Slot.PARTITIONS]
    return size


@merged
def _fetch_bytes(row: Longs, version: int) -> int:
    is_flexible = version >= _FETCH_FLEXIBLE_SINCE
    size: int = (
        4 + (4 if version >= 1 else 0) + (6 if version >= 7 else 0) + (1 if is_flexible else 0)
    )
    size += _topics(row, version, is_flexible) + row[Slot.RECORDS]
    each = 14 + (8 if version >= 4 else 0) + (8 if version >= 5 else 0)
    each += 4 if version >= 11 else 0
    if is_flexible:
        size += row[Slot.RECORDS_LENGTHS] + row[Slot.ABORTED_LENGTHS] + row[Slot.TAGS]
        size += 17 * row[Slot.ABORTED] + (each + 1) * row[Slot.PARTITIONS]
        return size
    each += 4
    if version >= 4:
        each += 4
        size += 16 * row[Slot.ABORTED]
    size += each * row[Slot.PARTITIONS]
    return size


@merged
def _topics(row: Longs, version: int, is_flexible: bool) -> int:
    """Return the bytes of names or ids, of counts of topics and partitions, and of topics' tags."""
    topics = row[Slot.TOPICS]
    size: int = row[Slot.TOPICS_LENGTHS] if is_flexible else 4
    size += topics + row[Slot.PARTITIONS_LENGTHS] if is_flexible else 4 * topics
    if version >= _IDS_SINCE:
        size += _ID * topics
    else:
        size += row[Slot.NAMES] + (row[Slot.NAMES_LENGTHS] if is_flexible else 2 * topics)
    return size


@merged
def _length(row: Longs, string: int) -> int:
    """Return the bytes of a string on the wire; an escape is one byte."""
    length: int = row[string + 1] - row[string] - row[string + 2]
    return length
