"""Names as numbers: clients and files are few, and every worker gets all of them.

Example: of 10,000 rows of alice's etl and bob's web, ``clients_of`` gives an array of zeros and
ones; each name was resolved once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels.values import Longs


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of clients, by user and client-id, and of files, by name."""

    clients: Mapping[tuple[str, str], int]
    files: Mapping[str, int]

    def clients_of(self, batch: pa.RecordBatch) -> Longs:
        """Of each row's ``user`` and ``client_id``.

        Raises:
            KeyError: a client without a number.
        """
        clients, at = clients_of(batch)
        return np.array([self.clients[each] for each in clients], np.int64)[at]

    def files_of(self, batch: pa.RecordBatch) -> Longs:
        """Of each row's ``src_file``.

        Raises:
            KeyError: a file without a number.
        """
        names, at = coded(batch["src_file"])
        # A dictionary may have names that no row has: of those that were filtered out.
        used = np.flatnonzero(np.bincount(at, minlength=len(names)))
        numbers = np.zeros(len(names), np.int64)
        numbers[used] = [self.files[names[each]] for each in used.tolist()]
        return numbers[at]


def clients_of(batch: pa.RecordBatch) -> tuple[list[tuple[str, str]], Longs]:
    """The different (user, client-id) of a batch, and the place of each row's among them."""
    users, user = coded(batch["user"])
    ids, client_id = coded(batch["client_id"])
    pairs, at = np.unique(user * max(1, len(ids)) + client_id, return_inverse=True)
    named = (divmod(pair, max(1, len(ids))) for pair in pairs.tolist())
    return [(users[one], ids[other]) for one, other in named], at


def coded(column: pa.Array) -> tuple[list[str], Longs]:
    """The different values of a column without nulls, and the place of each row's among them."""
    encoded = column.dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices.to_numpy(), np.int64)
