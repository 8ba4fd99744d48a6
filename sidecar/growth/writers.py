"""Who writes to which topic, from the PRODUCE lines of a broker's request log.

The last whole minute counts, and the current one so far. From version 13 on (Kafka 4.1), a PRODUCE
has the topics' ids in place of their names. At most ``MOST_PAIRS`` pairs of topic and user are
counted in a minute; later ones are left out. So are records that Kafka refused. Lines are decoded
only while a volume is near its limit.

Example: between 60 s and 120 s etl wrote 360 MB to "orders". At 121 s it writes 5.9 MB/s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from sidecar.requestlog.appended import appended
from sidecar.requestlog.exempt import PRODUCE
from sidecar.requestlog.line import Line
from sidecar.requestlog.produce_size import Produce

MINUTE_S: Final = 60.0
MOST_PAIRS: Final = 2000
MOST_USERS: Final = 3
"""The most users that are named for a topic."""

_DECODER: Final = msgspec.json.Decoder(Produce)


@dataclass(slots=True)
class Writers:
    """Bytes by topic and user; initially none.

    Attributes:
        is_wanted: whether lines are counted now.
    """

    is_wanted: bool = False
    _began: float | None = field(default=None, init=False)
    _now: dict[str, dict[str, int]] = field(default_factory=dict, init=False)
    # The last whole minute; None before one has passed.
    _before: dict[str, dict[str, int]] | None = field(default=None, init=False)
    _pairs: int = field(default=0, init=False)

    def want(self, *, is_wanted: bool, now: float) -> None:
        """Count lines from ``now`` on, or no longer."""
        if is_wanted and not self.is_wanted:
            self._began, self._before, self._now, self._pairs = now, None, {}, 0
        self.is_wanted = is_wanted

    def count(self, line: Line, now: float) -> None:
        """Count a line at ``now``, steady seconds; only a PRODUCE has records."""
        if not self.is_wanted or line.api_key != PRODUCE:
            return
        try:
            topics = _DECODER.decode(line.body.request).topics
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        self._turn(now)
        for topic in appended(topics, line.body.response):
            nbytes = sum(each.records_size_in_bytes for each in topic.partition_data)
            users = self._now.setdefault(topic.name or topic.topic_id, {})
            if line.user not in users:
                self._pairs += 1
                if self._pairs > MOST_PAIRS:
                    continue
            users[line.user] = users.get(line.user, 0) + nbytes

    def writers_to(self, topic: str, topic_id: str | None, now: float) -> Mapping[str, float]:
        """Return the users who write most to a topic, most first, with their bytes a second."""
        seconds = now - self._turn(now) + (0.0 if self._before is None else MINUTE_S)
        sums: dict[str, int] = {}
        for counted in (self._before or {}, self._now):
            for key in (topic, topic_id):
                for user, nbytes in counted.get(key or "", {}).items():
                    sums[user] = sums.get(user, 0) + nbytes
        most = sorted(sums.items(), key=lambda each: (-each[1], each[0]))[:MOST_USERS]
        return {user: nbytes / seconds for user, nbytes in most if nbytes and seconds > 0}

    def _turn(self, now: float) -> float:
        """Begin a new minute if it is time, and return when the current one began."""
        began = self._began
        if began is None or now >= began + MINUTE_S:
            is_next = began is not None and now < began + 2 * MINUTE_S
            self._before = self._now if is_next else None
            began = began + MINUTE_S if began is not None and is_next else now
            self._now, self._pairs = {}, 0
        self._began = began
        return began
