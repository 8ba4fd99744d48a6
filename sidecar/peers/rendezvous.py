"""Orders sidecars in the same way on every sidecar; the first of them ask all brokers.

The order is that of rendezvous hashing (Thaler, Ravishankar: Using name-based mappings to increase
hit rates, 1998). Each id has a score, and the highest score comes first. So a sidecar that leaves
or joins does not change the order of the others, and sidecars need no agreement.

Example: of a, b, c and d the first two are c and a. After c dies, they are a and b. After c is
back, they are c and a again.
"""

from collections.abc import Iterable
from hashlib import blake2b


def in_order(ids: Iterable[str]) -> list[str]:
    """Return the ids in order; every sidecar with the same ids gets the same order."""
    return sorted(set(ids), key=_score)


def _score(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=16).digest()
