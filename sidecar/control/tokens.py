"""The bearer tokens that allow changes over HTTP.

When the token changes in its file, clients get the new one sooner or later. So the former token is
accepted for five minutes more, unless SIGHUP ends it. A token that is not known may be newer than
the one that was read, so the file is read again before it is refused.

Example: the file has another token at 0 s. A script presents the new one at 1 s, and another script
the former one at 200 s: both are accepted. At 301 s the former one is refused.
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import Final

FORMER_S: Final = 300.0


async def _nothing_to_read() -> None:
    """The default of ``read``."""


class Tokens:
    """The current token and the former ones.

    Args:
        token: the first token.
        clock: steady seconds.
        read: reads the file again if it has changed, and may call ``replace``.

    Attributes:
        current: the current token; None refuses every change.
        read: as above.
    """

    def __init__(
        self,
        token: str | None,
        clock: Callable[[], float],
        read: Callable[[], Awaitable[None]] = _nothing_to_read,
    ) -> None:
        self.current = token
        self.read = read
        self._clock = clock
        self._former: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"Tokens(is_set={self.is_set}, former={len(self._former)})"

    @property
    def is_set(self) -> bool:
        """Whether there is a token."""
        return self.current is not None

    def replace(self, token: str | None, *, ends_former: bool) -> None:
        """Accept another token.

        Args:
            token: the token; None refuses every change.
            ends_former: whether no former token is accepted any more.
        """
        if self.current is not None and self.current != token:
            self._former[self.current] = self._clock() + FORMER_S
        if ends_former or token is None:
            self._former = {}
        self.current = token

    async def accept(self, shown: bytes) -> bool:
        """Return whether a request with this token is accepted."""
        if shown and self.is_set and not self._knows(shown):
            await self.read()
        return self._knows(shown)

    def _knows(self, shown: bytes) -> bool:
        now = self._clock()
        self._former = {each: until for each, until in self._former.items() if now <= until}
        known = [*self._former, *(() if self.current is None else (self.current,))]
        return any(hmac.compare_digest(shown, each.encode()) for each in known)
