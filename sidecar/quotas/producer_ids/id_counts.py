"""KIP-936: how many producer ids a user may use, and how long a user with more ids must wait.

``producer_ids_rate`` is a number of ids per window (an hour by default). A new id takes a token; an
id that was seen before takes none. The bucket holds the tokens of ``window_num`` windows, starts
full, and gets the tokens of one window per window. While it has a negative number of tokens, the
user must wait -tokens / rate. The sidecar learns of an id after its use, so it also counts the ids
of a user who is already throttled.

Example: with 50 ids an hour and 11 windows, the first 550 ids pass at once. After id 551 the user
waits 1 / (50 / 3,600 s) = 72 s. A user with 50 long-lived producers uses 50 tokens an hour.

A user without a filter in use is forgotten as soon as the bucket is full again. The KIP does not
wait for that: a user who is silent for one window has the tokens of 11 windows again. The KIP also
sweeps users every 10 ms; this code does so on access and in a slow ``tick``. If the clock goes
backwards, time stands still here. ``most_users`` bounds the users and ``most_bytes`` the filters. A
user with a limit takes the room of users without one, who are forgotten. An id without room is
counted as dropped, takes no token and throttles no user. So is an id of a user whose name a quota
callback refuses.

Source: KIP-936, sections "ProducerIdQuotaManager", "New Broker Configurations", "New Broker
Metrics" and "Tools"; the bucket is KIP-599's.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.quotas.entities import DEFAULT, LONGEST_USER, Default
from sidecar.quotas.producer_ids.seen_ids import FilterTerms, Noted, Room, SeenIds
from sidecar.quotas.producer_ids.user_ids import ProducerIdStatus, UserIds
from sidecar.quotas.rate import QuotaWindow

MOST_NAME_BYTES: Final = 1_000_000
"""The bytes of all users' names in JSON. Each answer to a quota callback has the names of all
throttled users, and a callback reads at most 4 MiB."""

_MS: Final = 1000
_SWEEP_MS: Final = 1000
"""The shortest time between two sweeps to make room for another user."""


@dataclass(frozen=True, slots=True)
class ProducerIdSettings:
    """How ids are counted.

    Attributes:
        window_num: producer.id.quota.window.num, the number of windows whose ids may come at once.
        window_size_s: producer.id.quota.window.size.seconds.
        false_positive_rate: how often a new id may look like a known one, between 0 and 1.
        expected_ids: the new ids of a typical user in half a window; the first filter has room for
            these.
        most_bytes: the bound for all filters together.
        most_users: the bound for users.
        most_throttle_s: a user whose wait is this long is not charged further; infinite as in the
            KIP.

    Raises:
        ValueError: a number is out of its range.
    """

    window_num: int = 11
    window_size_s: int = 3600
    false_positive_rate: float = 0.01
    expected_ids: int = 1000
    most_bytes: int = 16 << 20
    most_users: int = 5000
    most_throttle_s: float = math.inf

    def __post_init__(self) -> None:
        _ = self.window, self.filters
        if self.most_users < 1:
            raise ValueError(f"{self.most_users} users are less than 1")
        if self.most_bytes < self.filters.layer_bytes(0):
            raise ValueError(
                f"{self.most_bytes} bytes have no room for one filter of "
                f"{self.filters.layer_bytes(0)}"
            )
        if not self.most_throttle_s > 0:
            raise ValueError(f"a longest wait of {self.most_throttle_s} s is not above 0")

    @property
    def window(self) -> QuotaWindow:
        """The window for rates and buckets."""
        return QuotaWindow(self.window_num, self.window_size_s * _MS)

    @property
    def filters(self) -> FilterTerms:
        """The terms for filters."""
        return FilterTerms(self.window_size_s * _MS, self.expected_ids, self.false_positive_rate)


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of one id.

    Attributes:
        is_new: whether the id was counted.
        throttle_ms: how long its user must wait now, in milliseconds; 0 means no wait.
    """

    is_new: bool
    throttle_ms: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many ids were dropped for lack of room since the start.

    Attributes:
        of_unknown_users: ids, new or not, of users beyond ``most_users`` or ``MOST_NAME_BYTES``,
            or with a name that a quota callback refuses.
        of_known_users: new ids of users whose filters could not grow.
    """

    of_unknown_users: int
    of_known_users: int


ProducerIdLimits = Mapping[str | Default, float | None]
"""User, or DEFAULT for all others -> ids per window; None means no limit, even with a default."""


class ProducerIds:
    """The ids of all users. At the start no id is known and no limit applies."""

    def __init__(self, settings: ProducerIdSettings) -> None:
        self._settings = settings
        self._window = settings.window
        self._filters = settings.filters
        self._room = Room(settings.most_bytes)
        self._limits: ProducerIdLimits = {}
        self._users: dict[str, UserIds] = {}
        self._name_bytes = 0
        self._latest_ms: int | None = None
        # By whether the room was for a user with a limit.
        self._swept_ms: dict[bool, int] = {}
        self._dropped_unknown = 0
        self._dropped_known = 0

    def __repr__(self) -> str:
        return f"ProducerIds({len(self._users)} users, {self.filter_bytes} bytes)"

    @property
    def users(self) -> int:
        """How many users are known."""
        return len(self._users)

    @property
    def filter_bytes(self) -> int:
        """The memory of all filters, in bytes."""
        return self._room.taken_bytes

    @property
    def dropped(self) -> Dropped:
        """The ids that were dropped for lack of room."""
        return Dropped(self._dropped_unknown, self._dropped_known)

    def set_limits(self, limits: ProducerIdLimits) -> None:
        """Replace all limits. Counts stay; a user who had no limit starts with a full bucket.

        Raises:
            ValueError: a limit is not above 0, or not finite.
        """
        for user, limit in limits.items():
            if limit is not None and not (limit > 0 and math.isfinite(limit)):
                raise ValueError(f"{user}: {limit} ids per window is not above 0 and finite")
        self._limits = dict(limits)

    def limit(self, user: str) -> float | None:
        """Return how many ids per window a user may use; None means any number."""
        return self._limits.get(user, self._limits.get(DEFAULT))

    def record(self, user: str, producer_id: int, now_ms: int) -> Seen:
        """Count an id if it is new. An id below 0 is ignored: its producer is not idempotent."""
        now_ms = self._at(now_ms)
        if producer_id < 0:
            return Seen(is_new=False, throttle_ms=self.throttle_ms(user, now_ms))
        known = self._known(user, now_ms)
        if known is None:
            self._dropped_unknown += 1
            return Seen(is_new=False, throttle_ms=0)
        self._limit(user, known, now_ms)
        noted = known.seen.note(producer_id, now_ms)
        if noted is Noted.NO_ROOM and self._make_room(user, now_ms):
            noted = known.seen.note(producer_id, now_ms)
        if noted is Noted.NEW:
            known.charge(now_ms)
        elif noted is Noted.NO_ROOM:
            self._dropped_known += 1
        return Seen(noted is Noted.NEW, known.throttle_ms(now_ms))

    def throttle_ms(self, user: str, now_ms: int) -> int:
        """Return how long a user must wait, in milliseconds; 0 for an unknown user too."""
        status = self.status(user, now_ms)
        return 0 if status is None else status.throttle_ms

    def status(self, user: str, now_ms: int) -> ProducerIdStatus | None:
        """Return a user's ids; None for an unknown user, who is not throttled."""
        now_ms = self._at(now_ms)
        known = self._users.get(user)
        if known is None:
            return None
        self._limit(user, known, now_ms)
        if self._forgotten(user, known, now_ms):
            return None
        return known.status(user, now_ms)

    def statuses(self, now_ms: int) -> tuple[ProducerIdStatus, ...]:
        """Return the ids of all known users, sorted by name."""
        every = (self.status(user, now_ms) for user in sorted(self._users))
        return tuple(status for status in every if status is not None)

    def tick(self, now_ms: int) -> None:
        """Forget expired filters, and users about whom nothing has to be remembered.

        Results do not depend on it; it frees the memory of users who are gone.
        """
        now_ms = self._at(now_ms)
        for user, known in tuple(self._users.items()):
            self._limit(user, known, now_ms)
            self._forgotten(user, known, now_ms)

    def _at(self, now_ms: int) -> int:
        if self._latest_ms is None or now_ms > self._latest_ms:
            self._latest_ms = now_ms
        return self._latest_ms

    def _known(self, user: str, now_ms: int) -> UserIds | None:
        known = self._users.get(user)
        if known is not None:
            return known
        # A quota callback counts as Java does: a character beyond U+FFFF is two.
        if not 0 < len(user.encode("utf-16-le", "surrogatepass")) // 2 <= LONGEST_USER:
            return None
        if not self._has_room(user):
            self._make_room(user, now_ms)
            if not self._has_room(user):
                return None
        seen = SeenIds(self._filters, self._room)
        known = self._users[user] = UserIds(self._window, seen, self._settings.most_throttle_s)
        self._name_bytes += _name_bytes(user)
        return known

    def _has_room(self, user: str) -> bool:
        return (
            len(self._users) < self._settings.most_users
            and self._name_bytes + _name_bytes(user) <= MOST_NAME_BYTES
        )

    def _make_room(self, user: str, now_ms: int) -> bool:
        """Forget users for one without room; return False if that was done a moment ago."""
        is_limited = self.limit(user) is not None
        swept_ms = self._swept_ms.get(is_limited)
        if swept_ms is not None and now_ms - swept_ms < _SWEEP_MS:
            return False
        self._swept_ms[is_limited] = now_ms
        self.tick(now_ms)
        if is_limited:
            for other in [each for each in self._users if self.limit(each) is None]:
                self._pop(other).seen.clear()
        return True

    def _limit(self, user: str, known: UserIds, now_ms: int) -> None:
        known.limit_to(self.limit(user), now_ms)

    def _forgotten(self, user: str, known: UserIds, now_ms: int) -> bool:
        live = known.seen.forget(now_ms)
        if live or not known.is_full(now_ms):
            return False
        self._pop(user)
        return True

    def _pop(self, user: str) -> UserIds:
        self._name_bytes -= _name_bytes(user)
        return self._users.pop(user)


def _name_bytes(user: str) -> int:
    return len(json.dumps(user, ensure_ascii=False).encode("utf-8", "surrogatepass"))
