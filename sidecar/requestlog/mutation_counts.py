"""How many partitions a controller's request creates and deletes: what KIP-599 charges.

CREATE_TOPICS has the number, or its answer has. CREATE_PARTITIONS has the new total and
DELETE_TOPICS nothing, so both need the size that the topic had: it is known when the log had it
before, or the caller did (``learn``). What failed for another reason than the quota is not charged.

Example: a topic is created with 12 partitions, grown to 24 and deleted: 12, 12 and 24 mutations.
If the growth is refused with error 89, it is 12 refused ones, and 12 for the deletion.

Initially no size is known. Topics beyond ``most_topics`` make room for others, the one that was
seen first; names are cut, and those that are the same up to there are one topic.

Source: KIP-599; Kafka's ReplicationControlManager.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.requestlog.line import Line
from sidecar.requestlog.request_detail import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    TopicChange,
    TopicChanges,
    detail,
)

QUOTA_EXCEEDED: Final = 89
"""Kafka's THROTTLING_QUOTA_EXCEEDED."""

ABOUT_TOPICS: Final = frozenset({CREATE_TOPICS, CREATE_PARTITIONS, DELETE_TOPICS})
"""The APIs whose requests are mutations."""


@dataclass(frozen=True, slots=True)
class Mutations:
    """Those of one topic in a request.

    Attributes:
        partitions: created or deleted, or that would have been; None when that isn't known.
        refused: whether the quota refused them.
    """

    partitions: int | None
    refused: bool


def mutations_of(api_key: int, change: TopicChange, size: int | None) -> Mutations | None:
    """What one topic of a request is charged with; None when it failed for another reason.

    Args:
        api_key: of ``ABOUT_TOPICS``.
        change: of the topic.
        size: how many partitions it had; None: not known.
    """
    if change.error not in (0, None, QUOTA_EXCEEDED):
        return None
    return Mutations(_partitions(api_key, change, size), refused=change.error == QUOTA_EXCEEDED)


def _partitions(api_key: int, change: TopicChange, size: int | None) -> int | None:
    if api_key == CREATE_TOPICS:
        return change.partitions
    if api_key == DELETE_TOPICS or size is None or change.partitions is None:
        return size if api_key == DELETE_TOPICS else None
    return max(0, change.partitions - size)


class TopicSizes:
    """How many partitions topics have, as far as the log had it."""

    __slots__ = ("_longest_name", "_most", "_sizes")

    def __init__(self, most_topics: int = 20_000, longest_name: int = 256) -> None:
        """No size is known; both numbers are > 0."""
        self._most = most_topics
        self._longest_name = longest_name
        self._sizes: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"TopicSizes({len(self._sizes)} topics)"

    def learn(self, sizes: Mapping[str, int]) -> None:
        """Sets how many partitions topics have; later lines of the log win."""
        for topic, partitions in sizes.items():
            self._resize(topic, partitions)

    def mutations(self, line: Line) -> tuple[Mutations, ...] | None:
        """Those that a line's request was charged with or refused, in the request's order.

        Args:
            line: a controller's, of one of ``ABOUT_TOPICS``; in the log's order, since each line
                adds sizes for the next.

        Returns:
            None when the request can't be read.
        """
        changes = detail(line)
        if not isinstance(changes, TopicChanges):
            return None
        found = []
        for change in changes.changes:
            size = self._sizes.get(change.topic[: self._longest_name])
            one = mutations_of(line.api_key, change, size)
            if one is None:
                continue
            found.append(one)
            if not one.refused and not changes.validate_only:
                self._resize(change.topic, change.partitions)
        return tuple(found)

    def _resize(self, topic: str, partitions: int | None) -> None:
        topic = topic[: self._longest_name]
        self._sizes.pop(topic, None)
        if partitions is None:
            return
        if len(self._sizes) >= self._most:
            del self._sizes[next(iter(self._sizes))]
        self._sizes[topic] = partitions
