"""Which of a user's producer ids were seen lately, in memory that ids and not time make grow.

Two Bloom filters overlap: one is written to for half a window and read for a whole one, and the
next is opened by the first new id after that half. So an id is remembered for half a window at
least and for a whole one at most, from when it was new; being seen again does not renew it, so a
producer that lives for long is new again about once per window.

A filter is a row of layers, each 4 times as large and half as often wrong as the one before, opened
when that is full. A filter is wrong at half the rate that was set, since two are asked. Both hold
at any number of ids: a user with few ids costs little, and one with many is not misjudged. What all
filters of all users take is bounded by their ``Room``; an id that there is no room for is not
remembered.

Ids come in blocks of 1,000, so each is mixed before it is hashed: with Python's own hash of an int,
which is the int, 1.6 % seemed to be seen where 1 % was set.

Example: a window of 1 h, 1,000 ids expected, 1 %: 1,559 bytes for up to 1,000 ids in half an hour,
8,516 for up to 5,000. An id of 12:00 in a filter of 11:45 is new again after 12:45.

Source: KIP-936, "Caching layer to track active PIDs per KafkaPrincipal". The mixing is the
finalizer of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators"; the layers are
Almeida et al., "Scalable Bloom Filters".
"""

import math
import operator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Imported where a filter is made: it takes 0.5 MB, and only quotas on producer ids need it.
    from rbloom import Bloom

_DOUBLINGS: Final = 2
"""From one layer to the next."""
_LONG: Final = (1 << 64) - 1
_BITS_PER_BYTE: Final = 8


class Noted(Enum):
    """What was known of an id."""

    NEW = "new"
    """It was not seen; now it is."""
    KNOWN = "known"
    """It was seen, or, as often as the false-positive rate says, it seems so."""
    NO_ROOM = "no room"
    """It was not seen, and can't be remembered."""


@dataclass(frozen=True, slots=True)
class FilterTerms:
    """What filters are made by.

    Attributes:
        window_ms: how long an id is remembered at most, milliseconds, at least 2.
        expected_ids: new ids of a user in half a window that the first layer has room for.
        false_positive_rate: how often a new id may seem to be seen, above 0 and below 1.

    Raises:
        ValueError: a number out of its range.
    """

    window_ms: int
    expected_ids: int
    false_positive_rate: float

    def __post_init__(self) -> None:
        if self.window_ms < 2:
            raise ValueError(f"a window of {self.window_ms} ms has no halves")
        if self.expected_ids < 1:
            raise ValueError(f"{self.expected_ids} expected ids are less than 1")
        if not 0 < self.false_positive_rate < 1:
            raise ValueError(
                f"a false-positive rate of {self.false_positive_rate} is not between 0 and 1"
            )

    def ids(self, layer: int) -> int:
        """How many a layer is for; the first is layer 0."""
        return self.expected_ids << _DOUBLINGS * layer

    def wrong(self, layer: int) -> float:
        """How often a full layer may be wrong: of all layers of two filters, what was set."""
        return math.ldexp(self.false_positive_rate, -(layer + 2))

    def layer_bytes(self, layer: int) -> int:
        """What a layer takes."""
        bits = self.ids(layer) * -math.log(self.wrong(layer)) / math.log(2) ** 2
        return math.ceil(bits / _BITS_PER_BYTE)


class Room:
    """The bytes that all filters may take together. Initially none are taken."""

    __slots__ = ("_most_bytes", "taken_bytes")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.taken_bytes = 0

    def take(self, count: int) -> bool:
        """Whether there was room for so many bytes; if so, they are taken."""
        if self.taken_bytes + count > self._most_bytes:
            return False
        self.taken_bytes += count
        return True


class SeenIds:
    """The ids of one user. Initially none was seen, and no filter is open."""

    __slots__ = ("_filters", "_room", "_terms")

    def __init__(self, terms: FilterTerms, room: Room) -> None:
        self._terms = terms
        self._room = room
        self._filters: list[_Filter] = []

    def __repr__(self) -> str:
        return f"SeenIds({len(self._filters)} filters of {self.bytes} bytes)"

    @property
    def bytes(self) -> int:
        """What its filters take."""
        return sum(each.bytes for each in self._filters)

    def __contains__(self, producer_id: int) -> bool:
        """Whether an id was seen, or seems so, as of the last ``note`` or ``forget``."""
        return self._contains(_mixed(producer_id))

    def note(self, producer_id: int, now_ms: int) -> Noted:
        """Whether an id is new; remembers it. The clock may not go backwards."""
        self.forget(now_ms)
        mixed = _mixed(producer_id)
        if self._contains(mixed):
            return Noted.KNOWN
        written = self._written(now_ms)
        return Noted.NEW if written.add(mixed, self._room) else Noted.NO_ROOM

    def forget(self, now_ms: int) -> bool:
        """Drops the filters that are over; whether one is left."""
        while self._filters and now_ms > self._filters[0].opened_ms + self._terms.window_ms:
            self._room.taken_bytes -= self._filters.pop(0).bytes
        return bool(self._filters)

    def _contains(self, mixed: int) -> bool:
        return any(mixed in each for each in self._filters)

    def _written(self, now_ms: int) -> "_Filter":
        half_ms = self._terms.window_ms // 2
        if not self._filters or now_ms > self._filters[-1].opened_ms + half_ms:
            self._filters.append(_Filter(self._terms, now_ms))
        return self._filters[-1]


class _Filter:
    """Ids of half a window. Initially it has no layer, and takes nothing."""

    __slots__ = ("_free", "_layers", "_terms", "bytes", "opened_ms")

    def __init__(self, terms: FilterTerms, opened_ms: int) -> None:
        self._terms = terms
        self._layers: list[Bloom] = []
        self._free = 0
        self.bytes = 0
        self.opened_ms = opened_ms

    def __contains__(self, mixed: int) -> bool:
        # Most ids are in the last layer, which is the largest.
        return any(mixed in layer for layer in reversed(self._layers))

    def add(self, mixed: int, room: Room) -> bool:
        """Whether there was room for it."""
        if self._free == 0 and not self._grow(room):
            return False
        self._layers[-1].add(mixed)
        self._free -= 1
        return True

    def _grow(self, room: Room) -> bool:
        layer = len(self._layers)
        size = self._terms.layer_bytes(layer)
        if not room.take(size):
            return False
        ids = self._terms.ids(layer)
        # Its ids are mixed already, once for all layers.
        from rbloom import Bloom  # noqa: PLC0415 - see above

        self._layers.append(Bloom(ids, self._terms.wrong(layer), operator.index))
        self._free = ids
        self.bytes += size
        return True


def _mixed(producer_id: int) -> int:
    mixed = (producer_id + 0x9E3779B97F4A7C15) & _LONG
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _LONG
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _LONG
    return mixed ^ (mixed >> 31)
