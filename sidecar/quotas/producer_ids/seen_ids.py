"""Remembers a user's recent producer ids, in memory that grows with the ids and not with time.

Two Bloom filters overlap. Each is written for half a window and read for a whole one. The first new
id after that half opens the next filter. An id is therefore remembered for at least half a window
and at most a whole one. Seeing an id again does not extend that, so a long-lived producer counts as
new about once per window.

A filter consists of layers. A full layer opens the next one, which is 4 times as large and has half
the error rate. A filter has half the configured error rate, because each lookup uses two filters.
Both properties hold for any number of ids: a user with few ids costs little, and the error rate
does not rise for a user with many. A ``Room`` bounds the memory of all filters of all users. An id
without room is not remembered.

Brokers allocate ids in blocks of 1,000. Python's hash of an int is the int itself, and with it 1.6
% of new ids looked like known ones where 1 % was configured. Ids are therefore mixed before they
are hashed.

Example: a window of 1 h, 1,000 expected ids and an error rate of 1 % take 1,559 bytes for up to
1,000 ids in half an hour, and 8,516 for up to 5,000. An id that comes at 12:00 into a filter of
11:45 is new again after 12:45.

Source: KIP-936, "Caching layer to track active PIDs per KafkaPrincipal". The mixing is the
finalizer of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators"; the layers are
Almeida et al., "Scalable Bloom Filters".
"""

import math
import operator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Imported where a filter is made, because it takes 0.5 MB and only this capability needs it.
    from rbloom import Bloom

_DOUBLINGS: Final = 2
"""How much larger the next layer is."""
_LONG: Final = (1 << 64) - 1
_BITS_PER_BYTE: Final = 8


class Noted(Enum):
    """The result of a lookup."""

    NEW = auto()
    """The id is new, and is remembered now."""
    KNOWN = auto()
    """The id was seen before, or looks so (at the false-positive rate)."""
    NO_ROOM = auto()
    """The id is new, and there is no room to remember it."""


@dataclass(frozen=True, slots=True)
class FilterTerms:
    """The terms of filters.

    Attributes:
        window_ms: the longest time that an id is remembered, in milliseconds, at least 2.
        expected_ids: how many new ids of a user in half a window the first layer has room for.
        false_positive_rate: how often a new id may look like a known one, between 0 and 1.

    Raises:
        ValueError: a number is out of its range.
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
        """Return how many ids a layer has room for; the first layer is 0."""
        return self.expected_ids << _DOUBLINGS * layer

    def wrong(self, layer: int) -> float:
        """Return a full layer's error rate; the layers of two filters add up to the set rate."""
        return math.ldexp(self.false_positive_rate, -(layer + 2))

    def layer_bytes(self, layer: int) -> int:
        """Return the bytes that a layer takes."""
        bits = self.ids(layer) * -math.log(self.wrong(layer)) / math.log(2) ** 2
        return math.ceil(bits / _BITS_PER_BYTE)


class Room:
    """The bytes that all filters may take together. At the start none are taken."""

    __slots__ = ("_most_bytes", "taken_bytes")

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.taken_bytes = 0

    def take(self, count: int) -> bool:
        """Take this many bytes; return False, and take none, if there is no room."""
        if self.taken_bytes + count > self._most_bytes:
            return False
        self.taken_bytes += count
        return True


class SeenIds:
    """The ids of one user. At the start no id is known, and no filter is open."""

    __slots__ = ("_filters", "_room", "_terms")

    def __init__(self, terms: FilterTerms, room: Room) -> None:
        self._terms = terms
        self._room = room
        self._filters: list[_Filter] = []

    def __repr__(self) -> str:
        return f"SeenIds({len(self._filters)} filters of {self.bytes} bytes)"

    @property
    def bytes(self) -> int:
        """The bytes that the filters take."""
        return sum(each.bytes for each in self._filters)

    def __contains__(self, producer_id: int) -> bool:
        """Whether an id was seen, or looks so, as of the last ``note`` or ``forget``."""
        return self._contains(_mixed(producer_id))

    def note(self, producer_id: int, now_ms: int) -> Noted:
        """Look an id up and remember it. The clock must not go backwards."""
        self.forget(now_ms)
        mixed = _mixed(producer_id)
        if self._contains(mixed):
            return Noted.KNOWN
        written = self._written(now_ms)
        return Noted.NEW if written.add(mixed, self._room) else Noted.NO_ROOM

    def forget(self, now_ms: int) -> bool:
        """Drop expired filters; return whether one is left."""
        while self._filters and now_ms > self._filters[0].opened_ms + self._terms.window_ms:
            self._room.taken_bytes -= self._filters.pop(0).bytes
        return bool(self._filters)

    def clear(self) -> None:
        """Forget all ids."""
        self._room.taken_bytes -= self.bytes
        self._filters.clear()

    def _contains(self, mixed: int) -> bool:
        return any(mixed in each for each in self._filters)

    def _written(self, now_ms: int) -> "_Filter":
        half_ms = self._terms.window_ms // 2
        if not self._filters or now_ms > self._filters[-1].opened_ms + half_ms:
            self._filters.append(_Filter(self._terms, now_ms))
        return self._filters[-1]


class _Filter:
    """The ids of half a window. At the start it has no layer and takes no memory."""

    __slots__ = ("_free", "_layers", "_terms", "bytes", "opened_ms")

    def __init__(self, terms: FilterTerms, opened_ms: int) -> None:
        self._terms = terms
        self._layers: list[Bloom] = []
        self._free = 0
        self.bytes = 0
        self.opened_ms = opened_ms

    def __contains__(self, mixed: int) -> bool:
        # Search backwards: most ids are in the last layer, which is the largest.
        return any(mixed in layer for layer in reversed(self._layers))

    def add(self, mixed: int, room: Room) -> bool:
        """Remember an id; return whether there was room."""
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
        # The ids are already mixed, once for all layers.
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
