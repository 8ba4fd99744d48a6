"""What clients write to the broker beside this sidecar, by the PRODUCE lines of its request log.

Bytes are counted in slots of ``SLOT_S``. Two slots in a row have three quarters at least of any
``2 * SLOT_S``, and the first quota is twice the rate. The log is relied on only while it surely has
what all clients wrote: it is at DEBUG, was read for a minute, and nothing of it was lost or waits.

Example: etl writes 3 MB/s for 10 s. Wherever slots begin, its rate is 2.25 MB/s at least.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from sidecar.client_quotas.rates import Rates
from sidecar.client_quotas.writers import TopicWriters
from sidecar.requestlog.appended import appended
from sidecar.requestlog.exempt import PRODUCE
from sidecar.requestlog.line import Line
from sidecar.requestlog.produce_size import Produce, produce_bytes
from sidecar.throttle.peak import Peak

SLOT_S: Final = 5.0
WHOLE_S: Final = 60.0
"""The log counts only after it has been read for so long."""
SILENT_S: Final = 90.0
"""At DEBUG the log has a line for each poll of this sidecar. At INFO it has only requests of
deprecated versions, and not what others write."""
MOST_CLIENTS: Final = 10_000
MOST_BEHIND: Final = 4 << 20
_LONGEST_NAME: Final = 256
"""Client-ids that have this number of first characters in common are counted together."""

_DESCRIBE_LOG_DIRS: Final = 35
_DECODER: Final = msgspec.json.Decoder(Produce)

_Sums = dict[tuple[str | None, str | None], int]
"""User and client-id, None for any -> bytes. So a line counts for three of these."""


@dataclass(slots=True)
class Written:
    """What clients write to the broker beside this sidecar, by the lines of its request log.

    Attributes:
        writers: who writes to which topic; None if that is not needed.
        unread: returns how many lines and bytes the reader of the log has lost so far, and how many
            bytes it has not read yet. While that grows, rates are too low.
    """

    writers: TopicWriters | None = None
    unread: Callable[[], tuple[int, int]] = lambda: (0, 0)
    _peaks: tuple[Peak, Peak, Peak] = field(default_factory=lambda: (Peak(), Peak(), Peak()))
    _slot: int = field(default=0, init=False)
    _before: _Sums = field(default_factory=dict, init=False)
    _now: _Sums = field(default_factory=dict, init=False)
    _since: float = field(default=0.0, init=False)
    _polled: float | None = field(default=None, init=False)
    _missed: int = field(default=0, init=False)

    def count(self, line: Line, now: float) -> None:
        """Count a line at ``now``, steady seconds."""
        if line.api_key == _DESCRIBE_LOG_DIRS:
            if self._polled is None or now > self._polled + SILENT_S:
                self._since = now
            self._polled = now
        if line.api_key != PRODUCE:
            return
        self._turn(now)
        try:
            produce = _DECODER.decode(line.body.request)
            nbytes = produce_bytes(produce, line.api_version, line.client_id)
            # Kafka charges a refused request too, so it counts for the rate.
            is_kept = self.writers is None or self.writers.note(
                line.user, appended(produce.topics, line.body.response), now
            )
        except (msgspec.MsgspecError, UnicodeDecodeError):
            nbytes, is_kept = None, False
        if not is_kept:
            self._since = now
        user, client_id = line.user, line.client_id[:_LONGEST_NAME]
        is_new = (user, client_id) not in self._now
        if nbytes is None or (is_new and len(self._now) >= 3 * MOST_CLIENTS):
            self._since = now
            return
        for key in ((user, None), (None, client_id), (user, client_id)):
            self._now[key] = self._now.get(key, 0) + nbytes

    def rates(self, now: float) -> Rates | None:
        """Return the rates at ``now``, steady seconds; None while the log can't be relied on."""
        self._turn(now)
        missed, behind = self.unread()
        if missed != self._missed or behind > MOST_BEHIND:
            self._missed, self._since = missed, now
        is_silent = self._polled is None or now > self._polled + SILENT_S
        if is_silent or now < self._since + WHOLE_S:
            return None
        user, client_id, both = (peak.highest(now) for peak in self._peaks)
        return Rates(user, client_id, both)

    def _turn(self, now: float) -> None:
        """Begin a new slot if it is time."""
        slot = int(now // SLOT_S)
        if slot == self._slot:
            return
        highest = [0, 0, 0]
        for key, nbytes in self._now.items():
            shape = 0 if key[1] is None else 1 if key[0] is None else 2
            highest[shape] = max(highest[shape], nbytes + self._before.get(key, 0))
        for peak, most in zip(self._peaks, highest, strict=True):
            peak.add(most / (2 * SLOT_S), now)
        self._before = self._now if slot == self._slot + 1 else {}
        self._slot, self._now = slot, {}
