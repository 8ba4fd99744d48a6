"""How many partitions a request creates or deletes: KIP-599 charges this number.

A CREATE_TOPICS or its answer contains the number of partitions. A CREATE_PARTITIONS contains the
new total, and a DELETE_TOPICS no number. Both need the previous size of the topic, from an earlier
line. A request that failed for another reason than the quota is not charged.

Example: a topic is created with 12 partitions, grown to 24, and deleted: 12, 12 and 24 mutations.
If error 89 refuses the growth, 12 mutations are refused, and the deletion is charged with 12.

Initially no size is known. If there are more than ``most_topics``, the size that was learned first
is removed. Names are cut to ``longest_name``; topics whose names are then equal count as one topic.

Source: KIP-599; Kafka's ReplicationControlManager.
"""

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
    """The mutations of one topic in a request.

    Attributes:
        partitions: how many partitions the request creates or deletes; None if not known.
        refused: whether the quota refused them.
    """

    partitions: int | None
    refused: bool


def mutations_of(api_key: int, change: TopicChange, size: int | None) -> Mutations | None:
    """The mutations charged for one topic; None if the request failed for another reason.

    Args:
        api_key: one of ``ABOUT_TOPICS``.
        change: the change of the topic.
        size: how many partitions the topic had; None if not known.
    """
    if change.error not in (0, None, QUOTA_EXCEEDED):
        return None
    return Mutations(_partitions(api_key, change, size), refused=change.error == QUOTA_EXCEEDED)


def _partitions(api_key: int, change: TopicChange, size: int | None) -> int | None:
    if api_key == CREATE_TOPICS:
        return change.partitions
    if api_key == DELETE_TOPICS:
        return size
    if size is None or change.partitions is None:
        return None
    return max(0, change.partitions - size)


class TopicSizes:
    """How many partitions topics have, as far as the log contains it."""

    def __init__(self, most_topics: int = 20_000, longest_name: int = 256) -> None:
        """Starts without any size; both numbers are > 0."""
        self._most = most_topics
        self._longest_name = longest_name
        self._sizes: dict[str, int] = {}

    def mutations(self, line: Line) -> tuple[Mutations, ...] | None:
        """The mutations that a line's request was charged with or refused, in its order.

        Args:
            line: a controller's line of one of ``ABOUT_TOPICS``. Pass lines in the log's order,
                because each line adds sizes for the next.

        Returns:
            None if the request can't be read.
        """
        changes = detail(line)
        if not isinstance(changes, TopicChanges):
            return None
        charged = []
        for change in changes.changes:
            size = self._sizes.get(change.topic[: self._longest_name])
            mutations = mutations_of(line.api_key, change, size)
            if mutations is None:
                continue
            charged.append(mutations)
            if not mutations.refused and not changes.validate_only:
                self._resize(change.topic, change.partitions)
        return tuple(charged)

    def _resize(self, topic: str, partitions: int | None) -> None:
        topic = topic[: self._longest_name]
        self._sizes.pop(topic, None)
        if partitions is None:
            return
        if len(self._sizes) >= self._most:
            del self._sizes[next(iter(self._sizes))]
        self._sizes[topic] = partitions
