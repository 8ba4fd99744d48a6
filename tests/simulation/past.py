"""How many bytes of clients may land past a limit: their rate times the delays of the rules.

A volume V violates from a moment on; a client's leader L, whose callback is to make it wait, is V
itself or another broker. Until L throttles, its clients write as fast as they can, ``CATCH_UP``
times their rate; from then on each patient one lands a request a pause, and a hundredth leaks.
These are the delays, in seconds, with n brokers, and i as the check interval:

===========  ==============================================  ========================  ==========
cause        when                                            delay                     i = 10
===========  ==============================================  ========================  ==========
``eyes``     L is V, whatever fails: it looks four times     0.25                      0.25
             a second
``reaction`` L is another, no fault touches L, V and L's     i, a poll's deadline, two 10 + 10
             own sidecar                                     slow answers of V, two    + 5 + 4
                                                             long polls                = 29
``reaction`` the same of a sidecar of another broker, where  the same with a round of  10 + 10
             L asks them: 1 s each, and 2 s for an answer    n - 1 others in place of  + 5 + 2 x 3
                                                             the long polls            = 31
``leak``     L had heard of it before the fault: the last    0                         0
             word counts for the validity, and a restart of
             L finds it on its disk
``fault``    the violation begins in the fault, and none of  until it ends, then       20 + 15 + 29
             the above is so; often 0, by the last forecast  ``RECOVERY_S`` and a      = 64
                                                             reaction
===========  ==============================================  ========================  ==========

What that means for a fault: V is frozen or killed: nothing is appended to it. L is frozen or
killed: its clients write to nobody until another leads. L is killed and restarted in a throttle: 0
by its disk, and 0.25 at most by its eyes. A sidecar is gone, frozen, cut off, without names or
password: 0.25 of the own volume, 0 of one that was heard of, else that of the others, or of the
fault's own length. The wall clocks of a broker and its sidecar are stepped: none, since both count
by the steady one, but for a broker that restarts then, whose disk's word may be too old.

Of clients that open a connection for each request the same holds but for the ``leak``: no callback
bounds it, and where brokers have the authorizer ``dialled`` has the bound.

Reported and not bounded: what lands while L's sidecar has an override, which is the operator's word
(``override``); that leak without the authorizer; and what a follower copies that was away
(``replication``), which is what was written meanwhile.

Example: a client of 2 MB/s in requests of 1 MB, whose leader's own volume violates, and whose
sidecar has been gone for a minute: 4 x 2 x 0.25 + 1 = 3 MB may land at first, then 1 MB each 4 s,
and 80 kB/s.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final

from tests.simulation.clients import CATCH_UP, Client, Patience
from tests.simulation.dialled import Dialled, leaks
from tests.simulation.faults import SEEN_SLOW_S, Fault, Kind
from tests.simulation.touched import link
from tests.simulation.turns import EVERY_S
from tests.simulation.volumes import Volume

if TYPE_CHECKING:
    from tests.simulation.brokers import SimulatedBroker
    from tests.simulation.claims import Claims
    from tests.simulation.world import World

PAUSE_MAX_S: Final = 4.0
EMERGENCY_PAUSE_MAX_S: Final = 40.0
HEARD_S: Final = 4.0
"""Two long polls of a callback that is told to come back, and its time-out."""
EYES_S: Final = 0.25
"""From one look of a broker at its own volume to the next."""
VALIDITY_S: Final = 300.0
"""throttle.factor.validity.duration."""
_OTHER_S: Final = EVERY_S + 2.0
"""What another sidecar costs that does not answer."""
_FORGETFUL: Final = (Kind.OVERRIDE, Kind.FORGET, Kind.STATE_DAMAGED, Kind.SIDECAR_REPLACED)
"""What may end a sidecar's word."""


class Past:
    """The causes of what lands past limits, and the bounds of each."""

    def __init__(self, world: "World", claims: "Claims") -> None:
        self._world = world
        self._claims = claims
        self._heard: dict[tuple[int, Volume], tuple[float, float]] = {}
        self._overridden_at: dict[int, float] = {}
        self._blind_s: Counter[tuple[Volume, Patience]] = Counter()
        self._violated: dict[Volume, float] = {}
        self._dialled = Dialled(world.clients)

    @property
    def reaction_s(self) -> float:
        """How long it may take until a broker has heard of a violation from its own sidecar."""
        return self._seen_s + HEARD_S

    @property
    def others_s(self) -> float:
        """The same from other sidecars, where they are asked."""
        return self._seen_s + _OTHER_S * (len(self._world.brokers) - 1)

    @property
    def longest_s(self) -> float:
        """The same from whomever a callback asks."""
        return max(self.reaction_s, self.others_s) if self._world.asks_others else self.reaction_s

    @property
    def _seen_s(self) -> float:
        interval_s = self._world.interval_s
        return interval_s + min(10.0, max(2.0, interval_s)) + 2 * SEEN_SLOW_S

    def heard_within_s(self, leader: int, volume: Volume) -> float | None:
        """By when a leader has to have heard of a volume; None: faults touch every path."""
        world, claims = self._world, self._claims
        names = world.brokers[leader].name, world.brokers[volume.broker].name
        if not claims.is_undisturbed(*names, volume.name):
            return None
        if claims.is_undisturbed(*self._way(leader, world.sidecars[leader].name, volume)):
            return self.reaction_s
        if any(
            claims.is_undisturbed(*self._way(leader, each, volume)) for each in self.asked(leader)
        ):
            return self.others_s
        return None

    def _way(self, leader: int, sidecar: str, volume: Volume) -> list[str]:
        """By which a leader hears of a volume from a sidecar."""
        world = self._world
        sees = link(sidecar, world.brokers[volume.broker].name)
        return [sidecar, sees, link(world.brokers[leader].name, sidecar)]

    def asked(self, leader: int) -> list[str]:
        """Which sidecars a broker's callback asks, by name."""
        world = self._world
        own = world.sidecars[leader]
        return [each.name for each in (world.sidecars.values() if world.asks_others else [own])]

    def is_lifted(self, leader: int) -> bool:
        """Whether an operator's word is in force at a broker, and may be."""
        world = self._world
        if leader not in world.callbacks or not world.callbacks[leader].is_lifted(world.now()):
            return False
        return world.now() - self._overridden_at.get(leader, -VALIDITY_S) < VALIDITY_S

    def overridden(self, number: int) -> None:
        """A sidecar has an override now."""
        self._overridden_at[number] = self._world.now()

    def begins(self, fault: Fault) -> None:
        """Who heard of a volume may have forgotten it."""
        if fault.kind is Kind.CLOCK_STEPPED:
            # By its clock, what its disk has may be too old when it is back.
            gone = [key for key in self._heard if key[0] == fault.target]
        elif fault.kind is Kind.BROKER_RENUMBERED:
            gone = [key for key in self._heard if key[1].broker == fault.target]
        elif fault.kind in _FORGETFUL:
            name = self._world.sidecars[fault.target].name
            gone = [key for key in self._heard if name in self.asked(key[0])]
        else:
            return
        for key in gone:
            del self._heard[key]

    def cause(self, client: Client, leader: "SimulatedBroker", volume: Volume) -> str:
        """Why a client can append to a volume that violates; "" while it does not."""
        since = volume.violates_since
        if since is None:
            return ""
        if self.is_lifted(leader.number):
            return "override"
        what = self._what(leader.number, volume, self._world.now() - since)
        callback = self._world.callbacks.get(leader.number)
        # By this append it may have ended, of a full volume of its own.
        if what == "leak" and callback is not None:
            self._dialled.past(client, (leader.number, *callback.throttle), volume, since)
        return f"{what} of {client.patience}"

    def landed(self, client: Client, leader: int) -> str:
        """A client's request is appended; what is wrong with that, in words, or ""."""
        world = self._world
        callback, now = world.callbacks[leader], world.now()
        if not world.refuses or callback.factor(now) > 0.0:
            return ""
        return self._dialled.landed(client, (leader, *callback.throttle), now)

    def _what(self, leader: int, volume: Volume, for_s: float) -> str:
        if leader == volume.broker:
            return "eyes" if for_s <= EYES_S else "leak"
        within_s = self.heard_within_s(leader, volume)
        if within_s is not None:
            return "reaction" if for_s <= within_s else "leak"
        return "leak" if self.had_heard(leader, volume) else "fault"

    def had_heard(self, leader: int, volume: Volume) -> bool:
        """Whether a leader heard of a violation before the fault: that word counts for long."""
        heard_since, last_at = self._heard.get((leader, volume), (-1.0, 0.0))
        lasts_s = VALIDITY_S - self.longest_s
        return heard_since == volume.violates_since and self._world.now() - last_at < lasts_s

    def tick(self, volume: Volume) -> None:
        """A second has passed: who has heard of a volume, and who can't hear of it."""
        world, claims, since = self._world, self._claims, volume.violates_since
        if since is None or self._violated.get(volume) != since:
            for kind in Patience:
                del self._blind_s[volume, kind]
            if since is None:
                return
            self._violated[volume] = since
        broker = world.brokers[volume.broker]
        for leader in world.brokers.values():
            names = [leader.name, broker.name, volume.name]
            for sidecar in self.asked(leader.number):
                names += self._way(leader.number, sidecar, volume)
            if world.now() - since > self.longest_s and claims.is_undisturbed(*names):
                self._heard[leader.number, volume] = since, world.now()
        for kind in Patience:
            leaders = {
                world.partitions[each.partition].leader
                for each in world.clients
                if each.patience is kind and broker.volume_of(each.partition) is volume
            }
            self._blind_s[volume, kind] += any(
                leader != volume.broker and self.heard_within_s(leader, volume) is None
                for leader in leaders
            )

    def allowed(self, cause: str, volume: Volume, for_s: float) -> float:
        """The most bytes that may land for a cause on a volume that violates for so long."""
        all_clients = self._world.clients
        what, _, kind = cause.partition(" of ")
        volume_of = self._world.brokers[volume.broker].volume_of
        clients = [
            each
            for each in all_clients
            if each.patience == kind and volume_of(each.partition) is volume
        ]
        at_once = sum(each.request_bytes for each in clients)
        fast = CATCH_UP * sum(each.bytes_per_s for each in clients)
        leaked = leaks(all_clients, for_s)
        match what:
            case "eyes":
                return fast * EYES_S + at_once
            case "reaction":
                return fast * self.longest_s + at_once
            case "fault":
                # A second more, since seconds are counted when they are over.
                return fast * (1.0 + self._blind_s[volume, Patience(kind)]) + at_once
            case "leak" if kind != Patience.HASTY:
                return at_once * (1 + for_s / PAUSE_MAX_S) + leaked
            case "leak" if self._world.refuses:
                since = volume.violates_since
                firsts = [self._dialled.at_first(each, volume, since) for each in clients]
                return leaked + sum(firsts)
        return float("inf")
