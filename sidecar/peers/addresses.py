"""The addresses of the sidecars of ``SIDECAR_PEERS``, whose names are looked up regularly.

A name with several addresses, such as that of a headless Service, stands for a sidecar at each
address. Any other name stands for one sidecar. If a name has IPv4 and IPv6 addresses, only the
family with more of them counts. When a lookup fails, the old addresses stay, so that a short
failure of the resolver does not make the sidecar forget its peers.

Example: http://sidecars.kafka:7070 has 10.0.0.1 and 10.0.0.2, so two sidecars are asked. A third
pod starts, and is asked within half a minute.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_LOOK_UP_S: Final = 30.0
"""The time between two lookups of a name, whose pods may come and go."""
_DEADLINE_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a sidecar.

    Attributes:
        url: the URL in the settings, without a path.
        ip: the sidecar's address, if its name has several; otherwise None.
    """

    url: str
    ip: str | None = None

    def __str__(self) -> str:
        """For logs and documents."""
        return self.url if self.ip is None else f"{self.url} at {self.ip}"


Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""URL -> the addresses of its name; none if the lookup fails."""


class Addresses:
    """Looks names up.

    Attributes:
        known: the addresses of the sidecars in the order of their names; before the first lookup,
            only the names.
        clock: steady seconds.
    """

    def __init__(
        self, urls: Sequence[str], clock: Callable[[], float], resolve: Resolve | None = None
    ) -> None:
        """Start without a lookup.

        Args:
            urls: the URLs of the sidecars.
            clock: steady seconds.
            resolve: looks a name up; None uses the machine's resolver.
        """
        self._by_url = {url: [Address(url)] for url in urls}
        self.clock = clock
        self._resolve = resolve or _by_resolver
        self._looked_up_at = -float("inf")

    @property
    def known(self) -> list[Address]:
        """See the class."""
        return [address for each in self._by_url.values() for address in each]

    async def look_up(self) -> bool:
        """Look all names up if that is due; return whether it was."""
        now = self.clock()
        if now - self._looked_up_at < _LOOK_UP_S:
            return False
        self._looked_up_at = now
        for url in self._by_url:
            ips = await self._resolve(url)
            if ips:
                several = [Address(url, ip) for ip in ips]
                self._by_url[url] = several if len(several) > 1 else [Address(url)]
        return True


async def _by_resolver(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        async with asyncio.timeout(_DEADLINE_S):
            found = await asyncio.get_running_loop().getaddrinfo(parts.hostname or "", port)
    except (OSError, TimeoutError, ValueError):
        # ValueError: the name has an invalid label, or the port is none.
        return []
    ips: dict[int, set[str]] = {socket.AF_INET: set(), socket.AF_INET6: set()}
    for family, *_, address in found:
        ips[family].add(str(address[0]))
    # A sidecar with an IPv4 and an IPv6 address is one sidecar, so only one family counts. ``max``
    # returns the first of equals, IPv4.
    most = max(ips.values(), key=len)
    return sorted(most)


class Requests:
    """One task for each sidecar that is asked now; none at first."""

    def __init__(self) -> None:
        """Start without tasks."""
        self._tasks: dict[Address, asyncio.Task[None]] = {}

    def retain(self, wanted: Mapping[Address, Callable[[], Coroutine[None, None, None]]]) -> None:
        """Ask only these sidecars. A sidecar whose task has ended is asked again at the next call.

        Raises:
            Exception: the exception of a task that ended.
        """
        for address, task in list(self._tasks.items()):
            if address not in wanted or task.done():
                del self._tasks[address]
                task.cancel()
            if task.done():
                task.result()
        # In the order of ``wanted``: a set's order differs from process to process, and a simulated
        # world must not.
        for address, ask in wanted.items():
            if address not in self._tasks:
                self._tasks[address] = asyncio.create_task(ask(), name=f"asks {address}")

    async def end(self) -> None:
        """End all tasks."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
