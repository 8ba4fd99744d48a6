"""Volumes that fill by what clients append, and what is counted of each.

A volume is one broker's. It violates while its available bytes are at most the limit's. Beyond that
moment each append counts as bytes past the limit, by why it was possible. It is at the stop line
while they are at most that line's, and near it while they are at most a tenth more. Producers may
be slowed or throttled because of it while they are at most the soft limit's, or the limit's and its
release margin's.

Example: 130 MB with a limit of 40 MB violate from 90 MB used on; an append of 1 MB a second later
is 1 MB past the limit.
"""

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Volume:
    """A volume.

    Attributes:
        log_dir: the log dir on it.
        total_bytes: its size.
        limit_bytes: at so many available bytes or fewer it violates.
        broker: the number of its broker.
        is_offline: whether its log dir is.
        is_unreadable: whether its broker answers with an unknown error in place of its sizes.
        used_bytes: what lies on it.
        violates_since: when it began to violate, seconds; None while it does not.
        violated_until: when it last ceased to violate, seconds; 0.0 when it never did.
        stop_bytes: likewise of the stop line; None: there is none.
        stops_since: when it began to be at the stop line, seconds; None while it is not.
        near_stop_until: when it last ceased to be near it, seconds; 0.0 when it never was.
        soft_bytes: likewise of the soft limit; None: there is none.
        margin_bytes: of the limit, for a release.
        held_since: when it began to violate; None from when it has that much more on.
        slows_until: when it last ceased to slow producers, seconds; 0.0 when it never did.
        past_bytes: by cause, what was appended while it violated, since it last began to.
        most_available: the most bytes available after a removal since the recorder looked last.
    """

    log_dir: str
    total_bytes: int
    limit_bytes: int
    broker: int = 0
    is_offline: bool = False
    is_unreadable: bool = False
    used_bytes: int = 0
    violates_since: float | None = None
    violated_until: float = 0.0
    stop_bytes: int | None = None
    stops_since: float | None = None
    near_stop_until: float = 0.0
    soft_bytes: int | None = None
    margin_bytes: int = 0
    held_since: float | None = None
    slows_until: float = 0.0
    past_bytes: dict[str, int] = field(default_factory=dict)
    most_available: int = 0

    @property
    def name(self) -> str:
        """As faults and messages call it."""
        return f"{self.log_dir} of broker {self.broker}"

    @property
    def available_bytes(self) -> int:
        """What may still be written."""
        return self.total_bytes - self.used_bytes

    @property
    def is_near_stop(self) -> bool:
        """Whether it has at most a tenth more than the stop line."""
        return self.stop_bytes is not None and 10 * self.available_bytes <= 11 * self.stop_bytes

    @property
    def slows(self) -> bool:
        """Whether producers may be slowed or throttled because of it."""
        least = max(self.soft_bytes or 0, self.limit_bytes + self.margin_bytes)
        return self.available_bytes <= least

    def append(self, count: int, now: float, cause: str) -> bool:
        """Appends bytes; False when they did not fit.

        Args:
            count: bytes.
            now: seconds.
            cause: why this was possible although the volume violates.
        """
        if count > self.available_bytes:
            return False
        if self.violates_since is not None:
            self.past_bytes[cause] = self.past_bytes.get(cause, 0) + count
        self.used_bytes += count
        self._judge(now)
        return True

    def free(self, count: int, now: float) -> None:
        """Retention removes bytes."""
        was_near_stop, slowed = self.is_near_stop, self.slows
        self.used_bytes = max(0, self.used_bytes - count)
        self.most_available = max(self.most_available, self.available_bytes)
        if was_near_stop and not self.is_near_stop:
            self.near_stop_until = now
        if slowed and not self.slows:
            self.slows_until = now
        self._judge(now)

    def _judge(self, now: float) -> None:
        if self.available_bytes > self.limit_bytes:
            if self.violates_since is not None:
                self.violates_since, self.violated_until = None, now
        elif self.violates_since is None:
            self.violates_since = now
            self.past_bytes = {}
        if self.stop_bytes is None or self.available_bytes > self.stop_bytes:
            self.stops_since = None
        elif self.stops_since is None:
            self.stops_since = now
        if self.violates_since is not None:
            self.held_since = now if self.held_since is None else self.held_since
        elif self.available_bytes > self.limit_bytes + self.margin_bytes:
            self.held_since = None
