"""Slots: the quota of a client, for one kind and some time.

A worker computes the slots of each of its clients once, and sends them with the charges. No process
needs all clients, of which there may be millions.

Example: alice's etl has no produce quota until 14:00, and then a quota of 5 MB/s: two slots.
"""

from collections.abc import Mapping
from typing import Final
from zlib import crc32

import msgspec
import numpy as np
import pyarrow as pa

from usage_pipeline.kernels.numbered import clients_of
from usage_pipeline.kernels.values import Longs
from usage_pipeline.replay.entities import Quotas
from usage_pipeline.tables.schemas import QUOTA_TYPES

_KINDS: Final = len(QUOTA_TYPES)
_MOST_CLIENTS: Final = 200_000
"""The number of slots that a worker remembers: about 200 MB."""


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """The quota of charges.

    Attributes:
        kind: the kind, as an index of QUOTA_TYPES.
        shared_by: the clients that share the quota.
        entity: the entity of the quota; without a quota, as ``shared_by``.
        limit: the limit; None if there is none, or if it throttles no client.
        counts: whether any quota of this kind exists.
    """

    kind: int
    shared_by: str
    entity: str
    limit: float | None
    counts: bool


class SlotsOfClients:
    """The slots of the clients so far.

    Attributes:
        slots: the slots, by number.
    """

    def __init__(self, quotas: Mapping[str, Quotas]) -> None:
        self._quotas = [quotas[quota_type] for quota_type in QUOTA_TYPES]
        self._forget()

    def _forget(self) -> None:
        self.slots: list[Slot] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._clients: list[tuple[str, str]] = []
        # The earliest slot of each kind and client, or -1; and the exclusive end of each slot,
        # after which the next slot of the same client and kind follows.
        self._first: Longs = np.full((_KINDS, 0), -1, np.int64)
        self._to_ms: Longs = np.zeros(0, np.int64)
        self._hash: Longs = np.zeros(0, np.int64)

    def forget_many(self) -> None:
        """Forget all slots and numbers if there are too many."""
        if len(self._clients) > _MOST_CLIENTS:
            self._forget()

    def slot_numbers(self, batch: pa.RecordBatch, row: Longs, kind: Longs, at_ms: Longs) -> Longs:
        """Return the slot number of each charge.

        Args:
            batch: a batch of requests with ``user`` and ``client_id``.
            row: the row in the batch, for each charge.
            kind: the kind of each charge.
            at_ms: the time of each charge.
        """
        clients, place = clients_of(batch)
        own = np.array([self._number(client) for client in clients], np.int64)
        width = len(self._clients)
        if width > self._first.shape[1]:
            more = np.full((_KINDS, 2 * width - self._first.shape[1]), -1, np.int64)
            self._first = np.concatenate([self._first, more], axis=1)
        client = own[place[row]]
        unknown = self._first[kind, client] < 0
        if unknown.any():
            self._find(np.unique(client[unknown] * _KINDS + kind[unknown]))
        slot = self._first[kind, client]
        while (late := at_ms >= self._to_ms[slot]).any():
            slot = slot + late
        return slot

    def hashes_of(self, slot: Longs) -> Longs:
        """Return a number for the kind and the sharing clients, equal in every worker."""
        return self._hash[slot]

    def _number(self, client: tuple[str, str]) -> int:
        number = self._numbers.get(client)
        if number is None:
            number = self._numbers[client] = len(self._clients)
            self._clients.append(client)
        return number

    def _find(self, missing: Longs) -> None:
        to_ms, hashes = [], []
        for client, kind in (divmod(each, _KINDS) for each in missing.tolist()):
            self._first[kind, client] = len(self.slots)
            for each in self._quotas[kind].of_client(*self._clients[client]):
                slot = Slot(kind, each.shared_by, each.entity, each.limit, each.counts)
                self.slots.append(slot)
                to_ms.append(each.to_ms)
                hashes.append(hash_of(kind, each.shared_by))
        self._to_ms = np.concatenate([self._to_ms, np.array(to_ms, np.int64)])
        self._hash = np.concatenate([self._hash, np.array(hashes, np.int64)])


def hash_of(kind: int, shared_by: str) -> int:
    """Return a hash that is equal on every machine, unlike hash()."""
    return crc32(f"{kind} {shared_by}".encode())
