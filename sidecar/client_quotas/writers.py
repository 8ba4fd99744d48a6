"""Which user wrote to which topic of the broker beside this sidecar, by its request log.

A pair of user and topic counts for ``PEAK_S`` after its last line, and is forgotten before twice
that. At most ``MOST_PAIRS`` new pairs, of ``MOST_BYTES``, are kept in that time. From version 13 on
(Kafka 4.1), a PRODUCE has the topics' ids in place of their names.

Example: alice writes to "orders" at minute 3, and never again. The pair counts until minute 30.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec

from sidecar.quotas.entities import LONGEST_USER
from sidecar.requestlog.produce_size import ProduceTopic
from sidecar.throttle.peak import PEAK_S

MOST_PAIRS: Final = 10_000
MOST_BYTES: Final = 2_000_000
"""The bytes of new pairs in JSON. An answer has the pairs of two such times, and other sidecars
read 4 MiB of it."""

_LONGEST_TOPIC: Final = 249
"""Kafka's longest name of a topic."""


_Rate = Annotated[float, msgspec.Meta(ge=0.0)]


class Writer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A user and a topic that it wrote to, which is given by its name or by its id."""

    user: Annotated[str, msgspec.Meta(max_length=LONGEST_USER)]
    topic: Annotated[str, msgspec.Meta(max_length=_LONGEST_TOPIC)]
    """The name; "" if only the id is known."""
    topic_id: Annotated[str, msgspec.Meta(max_length=_LONGEST_TOPIC)]
    """The id as request logs write it; "" if the name is known."""


class LoggedRates(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The most that clients which share a quota write, bytes/s; None if nobody writes."""

    user: _Rate | None
    client_id: _Rate | None
    both: _Rate | None


class BrokerWriters(msgspec.Struct, frozen=True):
    """What a sidecar tells of the broker beside it."""

    broker_id: int | None
    """The broker; None if the sidecar does not know which it is, or counts no writers."""
    cluster_id: str | None
    """The broker's cluster; None if it is not known yet."""
    is_whole: bool
    """Whether the log has what all clients wrote in the last minute."""
    writers: list[Writer]
    """Who wrote to which topic."""
    rates: LoggedRates | None = None
    """How much clients write; None if the log does not have all that they wrote."""


@dataclass(slots=True)
class TopicWriters:
    """Users and topics; initially none."""

    _began: float = field(default=0.0, init=False)
    _before: set[Writer] = field(default_factory=set, init=False)
    _now: set[Writer] = field(default_factory=set, init=False)
    _bytes: int = field(default=0, init=False)

    def note(self, user: str, topics: Iterable[ProduceTopic], now: float) -> bool:
        """Note what a request wrote to at ``now``, steady seconds; return whether all is kept."""
        self._turn(now)
        for topic in topics:
            writer = Writer(user, topic.name, "" if topic.name else topic.topic_id)
            if writer not in self._now:
                nbytes = len(msgspec.json.encode(writer)) + 1
                if len(self._now) >= MOST_PAIRS or self._bytes + nbytes > MOST_BYTES:
                    return False
                self._now.add(writer)
                self._bytes += nbytes
        return True

    def known(self, now: float) -> Set[Writer]:
        """Return the pairs of the last ``PEAK_S``, and some older ones."""
        self._turn(now)
        return self._before | self._now

    def _turn(self, now: float) -> None:
        if now < self._began + PEAK_S:
            return
        self._before = self._now if now < self._began + 2 * PEAK_S else set()
        self._began, self._now, self._bytes = now, set(), 0
