# aiokafka ships no type information, so what it makes is Any to mypy.
"""An array of a Kafka message, read as the bytes that it is made of.

An answer may have a hundred thousand entries of a few numbers each. Without tags they all have the
same size, so the array is one piece of bytes, which its reader takes apart step by step.

Example: 4,000 partitions of 22 bytes are 88 kB, and no object each.
"""

import struct
from io import BytesIO
from typing import Any

from aiokafka.protocol.types import Schema, TaggedFields, UnsignedVarInt32


class PackedArray:
    """A compact array of entries of numbers (KIP-482).

    Args:
        entry: an entry without tags, whose number, 0, is the last byte.
        fields: the same in the message's own types.
    """

    def __init__(self, entry: struct.Struct, *fields: tuple[str, Any]) -> None:
        self._entry = entry
        self._schema = Schema(*fields, ("tags", TaggedFields))

    def decode(self, data: BytesIO) -> bytes:
        """The entries without tags; if a broker sends some, they are left out.

        Raises:
            ValueError: it ends too early.
        """
        size = self._entry.size
        count = max(0, UnsignedVarInt32.decode(data) - 1)
        begin = data.tell()
        packed = data.read(count * size)
        if packed[size - 1 :: size].count(0) == count:
            return packed
        data.seek(begin)
        return b"".join(self._entry.pack(*self._schema.decode(data)[:-1]) for _ in range(count))
