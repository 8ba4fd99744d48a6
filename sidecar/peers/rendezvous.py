"""Orders sidecars in the same way on every sidecar; the first of them ask all brokers.

The order is that of rendezvous hashing (Thaler, Ravishankar: Using name-based mappings to increase
hit rates, 1998). Each id has a score, and the highest score comes first. So a sidecar that leaves
or joins does not change the order of the others, and sidecars need no agreement.

With zones, the first sidecar of each zone comes before the second of any, like the replicas of a
partition (Kafka's StripedReplicaPlacer). So of the first k, no two are in one zone while another
zone has none. Sidecars without a zone count as one zone. When one of the first k leaves, the others
stay, and one takes its place.

Example: of a, b, c and d the first two are c and a. After c dies, they are a and b. After c is
back, they are c and a again. If c and a are in one zone, and b and d in another, they are c and b.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Final

_NO_ZONES: Final[Mapping[str, str]] = MappingProxyType({})


def in_order(ids: Iterable[str], zones: Mapping[str, str] = _NO_ZONES) -> list[str]:
    """Return the ids in order; every sidecar with the same ids and zones gets the same order.

    Args:
        ids: the ids.
        zones: id -> its zone, if it is known.
    """
    by_score = sorted(set(ids), key=_score)
    turns: dict[str, int] = {}
    before: Counter[str | None] = Counter()
    for name in by_score:
        zone = zones.get(name)
        turns[name] = before[zone]
        before[zone] += 1
    return sorted(by_score, key=turns.__getitem__)


def _score(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=16).digest()
