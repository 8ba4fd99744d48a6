"""Names as numbers, within a batch.

Example: of 10,000 rows of alice's etl and bob's web, ``clients_of`` gives an array of zeros and
ones; each name was resolved once.
"""

import numpy as np
import pyarrow as pa

from sidecar.pipeline.kernels.values import Longs


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
