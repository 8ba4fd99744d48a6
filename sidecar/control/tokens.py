"""The bearer tokens that allow changes over HTTP.

When the token changes in its file, clients get the new one sooner or later. So the former token is
accepted for five minutes more, unless SIGHUP ends it. A token that is not known may be newer than
the one that was read, so the file is read again before it is refused.

Example: the file has another token at 0 s. A script presents the new one at 1 s, and another script
the former one at 200 s: both are accepted. At 301 s the former one is refused.
"""

import hmac
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

_log = logging.getLogger(__name__)

FORMER_S: Final = 300.0


async def _nothing_to_read() -> None:
    """The default of ``read``."""


@dataclass(slots=True, repr=False)
class Tokens:
    """The current token and the former ones.

    Attributes:
        current: the current token; None refuses every change.
        clock: steady seconds.
        read: reads the file again if it has changed, and may call ``replace``.
    """

    current: str | None
    clock: Callable[[], float]
    read: Callable[[], Awaitable[None]] = _nothing_to_read
    _former: dict[str, float] = field(default_factory=dict, init=False)
    _used_until: float = field(default=-math.inf, init=False)
    _is_logged: bool = field(default=False, init=False)

    def __repr__(self) -> str:
        return f"Tokens(is_set={self.is_set}, former={len(self._former)})"

    @property
    def is_set(self) -> bool:
        """Whether there is a token."""
        return self.current is not None

    @property
    def is_former_used(self) -> bool:
        """Whether a client used a former token that is still accepted."""
        return self.clock() <= self._used_until

    def replace(self, token: str | None, *, ends_former: bool) -> None:
        """Accept another token.

        Args:
            token: the token; None refuses every change.
            ends_former: whether no former token is accepted any more.
        """
        if self.current is not None and self.current != token:
            self._former[self.current] = self.clock() + FORMER_S
        if ends_former or token is None:
            self._former = {}
            self._used_until = -math.inf
        self.current = token

    async def accept(self, shown: bytes) -> bool:
        """Return whether a request with this token is accepted."""
        if shown and self.is_set and not self._knows(shown):
            await self.read()
        return self._knows(shown)

    def _knows(self, shown: bytes) -> bool:
        now = self.clock()
        self._former = {each: until for each, until in self._former.items() if now <= until}
        current = {} if self.current is None else {self.current: -math.inf}
        until = [
            until
            for each, until in (self._former | current).items()
            if hmac.compare_digest(shown, each.encode())
        ]
        self._note_use(max(until, default=-math.inf))
        return bool(until)

    def _note_use(self, until: float) -> None:
        self._used_until = max(self._used_until, until)
        if self.is_former_used and not self._is_logged:
            self._is_logged = True
            _log.warning(
                "a client used the former token, which is accepted for %.0f s more: give the "
                "client the new one",
                self._used_until - self.clock(),
            )

    def log_end_of_former(self) -> None:
        """Log once that a former token, which a client used, is no longer accepted."""
        if self._is_logged and not self.is_former_used:
            self._is_logged = False
            _log.info("the former token, which a client used, is no longer accepted")
