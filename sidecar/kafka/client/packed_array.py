# aiokafka ships no type information, so its values are Any to mypy.
"""Reads an array of a Kafka message as bytes, without an object for each entry.

An answer can have a hundred thousand entries of a few numbers each. Without tags, all entries have
the same size, so the array is kept as its bytes, and its entries are decoded one after another.

Example: 4,000 partitions of 22 bytes take 88 kB.
"""

import struct
from collections.abc import Iterator
from io import BytesIO
from typing import Any, ClassVar, Generic, Self, TypeVar

from aiokafka.protocol.types import Schema, UnsignedVarInt32

T = TypeVar("T")


class PackedArray(Generic[T]):
    """A compact array of entries of numbers (KIP-482), and the wire type of such a field.

    Attributes:
        ENTRY: the format of an entry without tags; the last byte is the number of tags, 0.
        KEPT: the same, with pad bytes in place of the fields that nobody needs.
        SCHEMA: an entry in aiokafka's types, with its tags.
    """

    __slots__ = ("_packed",)

    ENTRY: ClassVar[struct.Struct]
    KEPT: ClassVar[struct.Struct]
    SCHEMA: ClassVar[Schema]

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    @classmethod
    def decode(cls, data: BytesIO) -> Self:
        """Keeps the bytes of all entries; tags that a broker sends are removed.

        Raises:
            ValueError: the bytes end too early.
        """
        size = cls.ENTRY.size
        count = max(0, UnsignedVarInt32.decode(data) - 1)
        begin = data.tell()
        packed = data.read(count * size)
        if packed[size - 1 :: size].count(0) == count:
            return cls(packed)
        data.seek(begin)
        entries = (cls.ENTRY.pack(*cls.SCHEMA.decode(data)[:-1]) for _ in range(count))
        return cls(b"".join(entries))

    def __len__(self) -> int:
        return len(self._packed) // self.ENTRY.size

    def __iter__(self) -> Iterator[T]:
        entries: Iterator[Any] = self.KEPT.iter_unpack(self._packed)
        return entries
