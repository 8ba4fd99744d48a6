"""``python -m tests.simulation.scope_share``: which share a throttle of one volume leaves free.

A cluster of 100 brokers has topics of equal traffic and three replicas, placed as by KRaft's
controller (StripedReplicaPlacer): of a topic with n partitions, one after another lies on
the next three brokers of a random order. A broker puts each replica into the log dir that has the
fewest. Then one volume of the cluster is full.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Final

BROKERS: Final = 100
REPLICAS: Final = 3
TOPICS: Final = 2000
PARTITIONS: Final = (3, 30, 300)
VOLUMES: Final = (1, 4, 12)


def share_left_free(partitions: int, volumes: int, seed: int = 17) -> float:
    """The share of topics that have nothing on the full volume.

    Args:
        partitions: of each topic.
        volumes: of each broker.
        seed: of the placement.
    """
    chance = random.Random(seed)
    held = [[0] * volumes for _ in range(BROKERS)]
    on_full = 0
    for _ in range(TOPICS):
        on_full += (0, 0) in set(_placed(partitions, held, chance))
    return 1.0 - on_full / TOPICS


def _placed(
    partitions: int, held: Sequence[list[int]], chance: random.Random
) -> Iterator[tuple[int, int]]:
    """The broker and the volume of each replica of a topic."""
    order = chance.sample(range(BROKERS), BROKERS)
    for partition in range(partitions):
        for replica in range(REPLICAS):
            broker = order[(partition + replica) % BROKERS]
            counts = held[broker]
            least = min(counts)
            volume = chance.choice([each for each, count in enumerate(counts) if count == least])
            counts[volume] += 1
            yield broker, volume


def table() -> str:
    """As docs/how-much-and-whom.md has it."""
    head = " | ".join(f"{each} volume{'s' if each > 1 else ''} a broker" for each in VOLUMES)
    lines = [f"| partitions of each topic | {head} |", "|---" * (1 + len(VOLUMES)) + "|"]
    for partitions in PARTITIONS:
        shares = (f"{share_left_free(partitions, each):.0%}" for each in VOLUMES)
        lines.append(f"| {partitions} | {' | '.join(shares)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
