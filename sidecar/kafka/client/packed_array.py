# aiokafka ships no type information, so its values are Any to mypy.
"""Reads an array of a Kafka message as bytes, without an object for each entry.

An answer can have a hundred thousand entries of a few numbers each. Without tags, all entries have
the same size, so the array is kept as its bytes, and the reader decodes one entry after another.

Example: 4,000 partitions of 22 bytes take 88 kB.
"""

import struct
from io import BytesIO
from typing import Any

from aiokafka.protocol.types import Schema, TaggedFields, UnsignedVarInt32


class PackedArray:
    """A compact array of entries of numbers (KIP-482).

    Args:
        entry: the format of an entry without tags; the last byte is the number of tags, 0.
        fields: the same fields in aiokafka's types.
    """

    def __init__(self, entry: struct.Struct, *fields: tuple[str, Any]) -> None:
        self._entry = entry
        self._schema = Schema(*fields, ("tags", TaggedFields))

    def decode(self, data: BytesIO) -> bytes:
        """Returns the bytes of all entries; tags that a broker sends are removed.

        Raises:
            ValueError: the bytes end too early.
        """
        size = self._entry.size
        count = max(0, UnsignedVarInt32.decode(data) - 1)
        begin = data.tell()
        packed = data.read(count * size)
        if packed[size - 1 :: size].count(0) == count:
            return packed
        data.seek(begin)
        return b"".join(self._entry.pack(*self._schema.decode(data)[:-1]) for _ in range(count))
