"""Who asks all brokers: the first of a list that every sidecar orders alike.

By rendezvous hashing (Thaler, Ravishankar: Using name-based mappings to increase hit rates, 1998):
each id has a score, and the highest come first. So one that goes, or comes, changes nobody else's
place, and no sidecar has to agree with another about anything.

Example: of a, b, c and d the first two are c and a. c dies: a and b. It is back: c and a again.
"""

from collections.abc import Iterable
from hashlib import blake2b


def in_order(ids: Iterable[str]) -> list[str]:
    """The ids, the first first; alike wherever they are the same."""
    return sorted(set(ids), key=_score)


def _score(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=16).digest()
