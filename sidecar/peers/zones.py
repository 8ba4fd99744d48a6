"""The zones of the sidecars of ``SIDECAR_PEERS``: every sidecar asks every other one.

A sidecar's zone is ``SIDECAR_ZONE``, or the rack of the broker beside it. The answers are used when
all sidecars were asked once, so that the order of observers changes once and not with each answer.
A sidecar that does not answer, or does not know its rack yet, keeps its last zone. At first it has
none. Sidecars of older versions have none.

Example: of 30 sidecars, each asks the 30 addresses within a second, and again after ten minutes. Of
1,000 sidecars, each asks for 25 s.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec

from sidecar.peers.addresses import Address, Addresses
from sidecar.peers.trust import ASK_ERRORS, Trust

_log = logging.getLogger(__name__)

PATH: Final = "/v1/zone"

_AGAIN_S: Final = 600.0
"""When a sidecar is asked again; its pod may have moved."""
_RETRY_S: Final = 15.0
"""When a sidecar without a zone is asked again; the time doubles up to ``_AGAIN_S``."""
_AT_ONCE: Final = 20
_PAUSE_S: Final = 0.5
_DEADLINE_S: Final = 3.0


class ZoneAnswer(msgspec.Struct, frozen=True):
    """The zone of a sidecar; None if it knows none."""

    zone: Annotated[str, msgspec.Meta(max_length=1000)] | None


Ask = Callable[[Address], Awaitable[str | None]]
"""Asks a sidecar for its zone; raises like ``Trust.get``."""


@dataclass(slots=True)
class Zones:
    """Asks for the zones of all sidecars.

    Attributes:
        addresses: the addresses of all sidecars, including this one; its clock is used here.
        ask: requests a zone; None uses HTTP.
        trust: sends the requests; by default it trusts the machine's CA certificates.
        known: the text of an address -> the zone of the sidecar there. It is replaced, never
            changed.
    """

    addresses: Addresses
    ask: Ask | None = None
    trust: Trust = field(default_factory=Trust)
    known: Mapping[str, str] = field(default_factory=dict, init=False)
    _due_at: dict[str, float] = field(default_factory=dict, init=False)
    _retry_s: dict[str, float] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        """Ask all sidecars, until cancelled."""
        while True:
            now = self.addresses.clock()
            addresses = {str(each): each for each in self.addresses.known}
            due = [name for name in addresses if self._due_at.get(name, -math.inf) <= now]
            answers: dict[str, str | None] = {}
            for first in range(0, len(due), _AT_ONCE):
                names = due[first : first + _AT_ONCE]
                zones = await asyncio.gather(*(self._zone_of(addresses[name]) for name in names))
                answers |= dict(zip(names, zones, strict=True))
                await asyncio.sleep(_PAUSE_S)
            known = {
                name: zone
                for name in addresses
                if (zone := answers.get(name) or self.known.get(name))
            }
            if known != self.known:
                self.known = known
                _log_zones(known, len(addresses))
            next_at = min((self._due_at[name] for name in addresses), default=-math.inf)
            # Names are looked up meanwhile, so there may be more addresses.
            await asyncio.sleep(max(_PAUSE_S, min(_RETRY_S, next_at - self.addresses.clock())))

    async def _zone_of(self, address: Address) -> str | None:
        name, zone = str(address), None
        try:
            zone = await (self.ask or self._ask_by_http)(address)
        except ASK_ERRORS as error:
            # Its followers log why it can't be followed.
            _log.debug("the sidecar %s can't be asked for its zone: %s", address, error)
        wait_s = _AGAIN_S if zone else self._retry_s.get(name, _RETRY_S)
        self._retry_s[name] = _RETRY_S if zone else min(_AGAIN_S, 2 * wait_s)
        self._due_at[name] = self.addresses.clock() + wait_s
        return zone

    async def _ask_by_http(self, address: Address) -> str | None:
        answer = await self.trust.get(address, PATH, ZoneAnswer, deadline_s=_DEADLINE_S)
        return answer.zone


def _log_zones(known: Mapping[str, str], count: int) -> None:
    zones = sorted(Counter(known.values()).items())
    listed = ", ".join(f"{sidecars} in {zone}" for zone, sidecars in zones[:_AT_ONCE])
    if unknown := count - len(known):
        listed = f"{listed}{', ' if listed else ''}{unknown} without a known zone"
    _log.info("the zones of the sidecars, for the choice of observers: %s", listed)
