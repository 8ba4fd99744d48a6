"""Records what the auditor judges (``tests.auditor``): volumes, brokers, and what callbacks apply.

Once a second it looks at the brokers, and at no sidecar. Moments are kept as bytes: as objects an
hour of them has 200,000 blocks of memory, which would hide what a sidecar leaks.
"""

import asyncio
import pickle
from typing import TYPE_CHECKING, Final

from tests.auditor import BrokerSight, Moment, Setup, Trace, VolumeSight
from tests.simulation.clients import CATCH_UP, Patience
from tests.simulation.past import EMERGENCY_PAUSE_MAX_S, PAUSE_MAX_S

if TYPE_CHECKING:
    from tests.simulation.brokers import FormerBroker, SimulatedBroker
    from tests.simulation.world import World

_LOOK_S: Final = 1.0


class Recorder:
    """Records a world."""

    def __init__(self, world: "World") -> None:
        volume = next(world.volumes())
        self._world = world
        self._up_since: dict[int, float] = {}
        self._told_s: dict[int, float] = {}
        self._pauses: dict[int, float] = {}
        self._unregistered: dict[int, FormerBroker] = {}
        self._moments: list[bytes] = []
        self._had_emergency = False
        self._setup = Setup(
            limit_bytes=volume.limit_bytes,
            margin_bytes=volume.margin_bytes,
            soft_bytes=volume.soft_bytes,
            stop_bytes=volume.stop_bytes,
            interval_s=world.interval_s,
            most_bytes_per_s=CATCH_UP * sum(each.bytes_per_s for each in world.clients),
            once_bytes=sum(each.request_bytes for each in world.clients),
            pause_s=PAUSE_MAX_S,
            emergency_pause_s=EMERGENCY_PAUSE_MAX_S,
            asks_all=world.asks_others,
            is_bounded=world.refuses
            or all(each.patience is not Patience.HASTY for each in world.clients),
        )

    @property
    def trace(self) -> Trace:
        """What was seen so far."""
        return Trace(self._setup, [pickle.loads(each) for each in self._moments])

    def unregistered(self, former: "FormerBroker") -> None:
        """A node id is listed no more; the auditor is to know it, however short that was.

        A sidecar that reaches nobody has the first list without it later.
        """
        self._unregistered[former.broker_id] = former

    def charged(self, allowed_s: float) -> None:
        """A client was charged by a callback that allows such pauses, perhaps between two looks."""
        self._had_emergency |= allowed_s > PAUSE_MAX_S

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            world = self._world
            former = {**world.former, **world.unlisted, **self._unregistered}
            self._unregistered.clear()
            self._note_pauses()
            # Leaders move between two looks, so the pauses of an emergency may be of another one.
            for callback in world.callbacks.values():
                self.charged(callback.pause_max_s(world.now()))
            moment = Moment(
                world.now(),
                {number: self._sight(broker) for number, broker in world.brokers.items()},
                {key: world.claims.quiet_s(each.name) for key, each in world.sidecars.items()},
                sum(each.written_bytes for each in world.clients),
                [shown for each in former.values() for shown in each.shown_bytes],
            )
            self._moments.append(pickle.dumps(moment))
            self._had_emergency = False

    def _note_pauses(self) -> None:
        for client in self._world.clients:
            if client.longest_pause_s > self._told_s.get(client.number, 0.0):
                leader = self._world.partitions[client.partition].leader
                self._told_s[client.number] = client.longest_pause_s
                self._pauses[leader] = max(client.longest_pause_s, self._pauses.get(leader, 0.0))

    def _sight(self, broker: "SimulatedBroker") -> BrokerSight:
        world, now, number = self._world, self._world.now(), broker.number
        callback, quiet_s = world.callbacks.get(number), world.claims.quiet_s(broker.name)
        volumes = {
            each.log_dir: VolumeSight(
                None if each.is_offline else each.available_bytes,
                world.claims.quiet_s(each.name),
                is_unreadable=each.is_unreadable,
                most=max(each.most_available, each.available_bytes),
            )
            for each in broker.volumes
        }
        for each in broker.volumes:
            each.most_available = 0
        if not broker.is_running or callback is None:
            self._up_since.pop(number, None)
            self._pauses.pop(number, None)
            return BrokerSight(volumes=volumes, quiet_s=quiet_s)
        return BrokerSight(
            volumes=volumes,
            up_s=now - self._up_since.setdefault(number, now),
            quiet_s=quiet_s,
            factor=callback.factor(now),
            stops=callback.stop(now),
            overridden=callback.is_lifted(now),
            emergency=self._had_emergency,
            longest_pause_s=self._pauses.get(number, 0.0),
        )
