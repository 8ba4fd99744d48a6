"""Makes faults happen in a world, and ends them."""

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from tests.simulation.faults import Fault, Kind, cut_brokers, cut_ways
from tests.simulation.http_get import http_get
from tests.simulation.net import Way
from tests.simulation.touched import touched

if TYPE_CHECKING:
    from tests.simulation.brokers import SimulatedBroker
    from tests.simulation.world import World

GARBAGE: Final = b"\x00\x00\x00\x10\xff\xff\xff\xffnot Kafka's."
SLOW_DISK_S: Final = 3.0
_GONE: Final = (Kind.BROKER_KILLED, Kind.BROKER_RENUMBERED, Kind.BROKER_OF_ANOTHER_CLUSTER)
_CHANGE_S: Final = 10.0
_UNAUTHORIZED: Final = 401
_MOST_REFUSED: Final = 30
_UNREGISTERED_S: Final = 30.0
_LOOK_S: Final = 0.5
_DOWN_S: Final = 6.0
"""How long the restart of a broker takes at least: with half as much more it is fenced."""

End = Callable[[], None]


class Injector:
    """Injects a schedule of faults; all of them have ended when it has."""

    def __init__(self, world: "World", faults: Sequence[Fault]) -> None:
        self._world = world
        self._faults = faults
        self._begins: dict[Kind, Callable[[Fault], End]] = {
            Kind.BROKER_KILLED: self._kill_broker,
            Kind.BROKER_FROZEN: self._freeze_broker,
            Kind.BROKER_SLOW: self._slow_broker,
            Kind.BROKER_STAYS_SLOW: self._slow_broker,
            Kind.BROKER_CUTS_ANSWERS: lambda fault: self._spoil(fault, _cut),
            Kind.BROKER_SENDS_GARBAGE: lambda fault: self._spoil(fault, lambda _: GARBAGE),
            Kind.BROKER_OUT_OF_DATE: self._keep_list,
            Kind.BROKER_SHARES_ADDRESS: self._share_address,
            Kind.BROKER_OF_ANOTHER_CLUSTER: self._pass_address,
            Kind.BROKERS_ROLLED: self._roll,
            Kind.LOG_DIR_OFFLINE: self._offline,
            Kind.LOG_DIR_UNREADABLE: self._unreadable,
            Kind.LEADERS_MOVE: self._move,
            Kind.BROKER_RENUMBERED: self._renumber,
            Kind.CONTROLLER_LOST: self._lose_controller,
            Kind.SIDECAR_KILLED: self._kill_sidecar,
            Kind.SIDECAR_STOPPED: self._stop_sidecar,
            Kind.SIDECAR_FROZEN: self._freeze_sidecar,
            Kind.SIDECAR_REPLACED: self._replace_sidecar,
            Kind.CUT_FROM_BROKER: lambda fault: self._cut(fault, f"broker {fault.other:.0f}"),
            Kind.CUT_FROM_SOME: self._cut_from_some,
            # The callback is in the broker's process: its sidecar does not reach the broker either.
            Kind.CUT_FROM_CALLBACK: lambda fault: self._cut(fault, f"broker {fault.target}"),
            Kind.CUT_FROM_PEER: lambda fault: self._cut(fault, f"sidecar {fault.other:.0f}"),
            Kind.ZONES_CUT: self._cut_zones,
            Kind.NO_NAMES: self._no_names,
            Kind.NAMES_HANG: self._hang_names,
            Kind.CLOCK_STEPPED: self._step,
            Kind.DISK_FULL: self._fill_disk,
            Kind.DISK_SLOW: self._slow_disk,
            Kind.DISK_HANGS: self._hang_disk,
            Kind.STATE_DAMAGED: self._damage,
            Kind.CREDENTIALS_TURNED: self._turn_credentials,
            Kind.OVERRIDE: self._override,
            Kind.FORGET: self._forget,
            Kind.RELOAD: self._reload,
        }

    async def run(self, until_s: float) -> None:
        """Injects all, and returns when ``until_s`` is reached or a claim is broken."""
        world = self._world
        ends: list[tuple[float, Fault, End]] = []
        waiting = list(self._faults)
        while not world.claims.violations:
            now = world.now()
            for at_s, fault, end in [each for each in ends if each[0] <= now]:
                world.note(f"end of: {fault.kind} {fault.target}")
                end()
                world.claims.undisturb(*touched(fault, world))
                ends.remove((at_s, fault, end))
            if now >= until_s and not ends:
                return
            while waiting and waiting[0].at_s <= now:
                fault = waiting.pop(0)
                world.note(f"fault: {fault.kind} {fault.target} ({fault.other:g}, {fault.for_s} s)")
                world.claims.begins(fault)
                ends.append((fault.ends_s, fault, self._begins[fault.kind](fault)))
            due = [until_s, *(each[0] for each in ends), *(each.at_s for each in waiting[:1])]
            later = [each for each in due if each > now]
            await asyncio.sleep(min(1.0, min(later, default=now + 0.001) - now))

    def _kill_broker(self, fault: Fault) -> End:
        broker = self._world.brokers[fault.target]
        self._world.kill(broker)
        return lambda: self._world.boot(broker)

    def _freeze_broker(self, fault: Fault) -> End:
        process = self._world.brokers[fault.target].process
        process.freeze()
        return process.thaw

    def _slow_broker(self, fault: Fault) -> End:
        broker = self._world.brokers[fault.target]
        broker.slow_s = fault.other
        return partial(setattr, broker, "slow_s", 0.0)

    def _spoil(self, fault: Fault, spoil: Callable[[bytes], bytes]) -> End:
        broker = self._world.brokers[fault.target]
        broker.spoil = spoil
        return partial(setattr, broker, "spoil", None)

    def _offline(self, fault: Fault) -> End:
        volume = self._world.volume_of(fault)
        volume.is_offline = True
        self._world.move_leaders(fault.target, offline=True)
        return partial(self._world.online, volume)

    def _unreadable(self, fault: Fault) -> End:
        """Its log dir is written as before, and nobody knows its sizes."""
        volume = self._world.volume_of(fault)
        volume.is_unreadable = True
        return partial(setattr, volume, "is_unreadable", False)

    def _keep_list(self, fault: Fault) -> End:
        """The controllers don't reach a broker, which clients and sidecars still do."""
        broker = self._world.brokers[fault.target]
        self._world.lag(broker, fault.kind)
        return partial(self._world.catch_up, broker, fault.kind)

    def _share_address(self, fault: Fault) -> End:
        """Lists have another broker's address for it, as with one proxy before two of them.

        Only one broker at a time: if that other one had a wrong address too, its own would be this
        broker's alone, and nobody could tell who answers there without asking each broker its id.
        """
        world = self._world
        broker, other = world.brokers[fault.target], world.brokers[int(fault.other)]
        is_first = all(each.advertised_port is None for each in world.brokers.values())
        if is_first and not other.fenced:
            world.advertise(broker, other.port)
        return partial(world.advertise, broker, None)

    def _pass_address(self, fault: Fault) -> End:
        """A broker is gone, and a while later one of another cluster answers at its address."""
        world, broker = self._world, self._world.brokers[fault.target]
        world.kill(broker)
        stranger = world.stranger(broker)
        is_over = asyncio.Event()

        async def come() -> None:
            await asyncio.sleep(fault.other)
            for _ in range(int(fault.for_s / _LOOK_S)):
                if is_over.is_set():
                    return
                if broker.fenced or not fault.other:
                    stranger.boot()
                    return
                await asyncio.sleep(_LOOK_S)

        def end() -> None:
            is_over.set()
            stranger.kill()
            world.boot(broker)

        world.errand(come())
        return end

    def _roll(self, fault: Fault) -> End:
        """An operator restarts all brokers, in a world with a slope as soon as they are on it."""
        world = self._world
        ends_s = world.now() + fault.for_s
        first = fault.target
        count = len(world.brokers)
        left = [world.brokers[(first + each) % count] for each in range(count)]
        down: list[SimulatedBroker] = []

        async def roll() -> None:
            while world.now() < ends_s and left:
                await asyncio.sleep(1.0)
                if world.has_slope and not world.is_on_slope():
                    continue
                if any(each.fenced or not each.is_running for each in world.brokers.values()):
                    continue
                if not left:
                    # The fault has ended meanwhile.
                    return
                broker = left.pop(0)
                world.claims.disturb(broker.name)
                world.kill(broker)
                down.append(broker)
                await asyncio.sleep(_DOWN_S * (1.0 + fault.other))
                up()

        def up() -> None:
            while down:
                broker = down.pop()
                world.claims.undisturb(broker.name)
                # A fault that began meanwhile starts it at its end.
                if not self._takes_away(broker.number):
                    world.boot(broker)

        def end() -> None:
            left.clear()
            up()

        world.errand(roll())
        return end

    def _takes_away(self, broker: int) -> bool:
        """Whether a fault under way started with the end of a broker's process."""
        now = self._world.now()
        return any(
            fault.target == broker and fault.at_s <= now <= fault.ends_s
            for fault in self._faults
            if fault.kind in _GONE
        )

    def _move(self, fault: Fault) -> End:
        self._world.move_leaders(fault.target)
        return _nothing

    def _renumber(self, fault: Fault) -> End:
        """It starts with another node id, and an operator unregisters the old one some time later.

        Source: kafka-cluster.sh unregister.
        """
        world, broker = self._world, self._world.brokers[fault.target]
        world.kill(broker)

        async def unregister(former: int) -> None:
            await asyncio.sleep(_UNREGISTERED_S * fault.other)
            world.unregister(former)

        def end() -> None:
            former = broker.broker_id
            world.renumber(broker)
            world.errand(unregister(former))

        return end

    def _lose_controller(self, fault: Fault) -> End:
        """Nobody is fenced or unfenced, and no leader moves; then another one is the controller."""
        world = self._world
        world.has_controller = False

        def end() -> None:
            world.has_controller = True
            world.elect(fault.target)

        return end

    def _kill_sidecar(self, fault: Fault) -> End:
        sidecar = self._world.sidecars[fault.target]
        sidecar.kill()
        return lambda: sidecar.start(self._world.claims.watch)

    def _stop_sidecar(self, fault: Fault) -> End:
        sidecar = self._world.sidecars[fault.target]
        sidecar.stop()

        def end() -> None:
            sidecar.kill()
            sidecar.start(self._world.claims.watch)

        return end

    def _freeze_sidecar(self, fault: Fault) -> End:
        process = self._world.sidecars[fault.target].process
        process.freeze()
        return process.thaw

    def _replace_sidecar(self, fault: Fault) -> End:
        """It starts again on another machine, where nothing is kept."""
        sidecar = self._world.sidecars[fault.target]
        sidecar.disk.clear()
        for broker in self._world.all_registered():
            broker.served.pop(sidecar.name, None)
        return self._kill_sidecar(fault)

    def _cut(self, fault: Fault, *others: str) -> End:
        one = f"sidecar {fault.target}"
        return self._cut_ways([way for other in others for way in ((one, other), (other, one))])

    def _cut_ways(self, ways: Sequence[Way]) -> End:
        network = self._world.network
        network.cut(ways)
        return lambda: network.mend(ways)

    def _cut_from_some(self, fault: Fault) -> End:
        """It has sight of a part of the cluster, as an observer may have."""
        numbers = cut_brokers(fault, len(self._world.brokers))
        return self._cut(fault, *(f"broker {number}" for number in numbers))

    def _cut_zones(self, fault: Fault) -> End:
        return self._cut_ways(
            [
                (f"{one} {number}", f"{other} {to}")
                for number, to in cut_ways(fault, len(self._world.brokers))
                for one in ("broker", "sidecar")
                for other in ("broker", "sidecar")
            ]
        )

    def _no_names(self, fault: Fault) -> End:
        names, name = self._world.network.no_names, f"sidecar {fault.target}"
        names.add(name)
        return lambda: names.discard(name)

    def _hang_names(self, fault: Fault) -> End:
        network, name = self._world.network, f"sidecar {fault.target}"
        network.hanging_names.add(name)
        return partial(network.answer_names, name)

    def _step(self, fault: Fault) -> End:
        self._world.step_wall(fault.target, fault.other)
        return _nothing

    def _fill_disk(self, fault: Fault) -> End:
        disk = self._world.sidecars[fault.target].disk
        disk.is_full = True
        return partial(setattr, disk, "is_full", False)

    def _slow_disk(self, fault: Fault) -> End:
        process = self._world.sidecars[fault.target].process
        usual_s, process.thread_s = process.thread_s, SLOW_DISK_S
        return partial(setattr, process, "thread_s", usual_s)

    def _hang_disk(self, fault: Fault) -> End:
        disk = self._world.sidecars[fault.target].disk
        disk.hangs = True
        return disk.mend

    def _damage(self, fault: Fault) -> End:
        self._world.sidecars[fault.target].disk.damage()
        return _nothing

    def _turn_credentials(self, fault: Fault) -> End:
        """The brokers have a new password of a sidecar before its files have it, or after."""
        sidecar = self._world.sidecars[fault.target]
        password = f"{sidecar.password}+"
        at_brokers = partial(self._world.passwords.update, {sidecar.user: password})
        in_files = partial(sidecar.rotate, password)
        begin, end = (in_files, at_brokers) if fault.other % 2 else (at_brokers, in_files)
        begin()
        return end

    def _override(self, fault: Fault) -> End:
        drill = {"factor": fault.other, "reason": "a drill", "duration": "PT1H"}
        self._change(fault, "PUT", "/v1/override", drill)
        return lambda: self._change(fault, "DELETE", "/v1/override", again=True)

    def _forget(self, fault: Fault) -> End:
        """An operator says that a node id, or a log dir, is gone; it is refused where it is not."""
        world = self._world
        broker = world.brokers[int(fault.other)]
        for each in world.all_registered():
            if each.name == broker.name:
                path = f"/v1/brokers/{each.broker_id}"
                # What is forgotten may be released.
                gone = partial(each.served.pop, world.sidecars[fault.target].name, None)
                self._change(fault, "DELETE", path, done=gone)
                for volume in each.volumes:
                    query = f"/log-dirs?path={quote(volume.log_dir)}"
                    self._change(fault, "DELETE", path + query, done=gone)
        return _nothing

    def _change(
        self,
        fault: Fault,
        method: str,
        path: str,
        document: object = None,
        done: Callable[[], object] = lambda: None,
        *,
        again: bool = False,
    ) -> None:
        """What an operator requests of a sidecar, again and again if it must be done."""
        sidecar = self._world.sidecars[fault.target]
        body = b"" if document is None else json.dumps(document).encode()

        async def ask() -> int | None:
            began, process = self._world.now(), sidecar.process
            ran, freezes = process.runs, process.freezes
            bearer = {"Authorization": f"Bearer {sidecar.token}"}
            headers = {**bearer, "Content-Type": "application/json"}
            answer = await http_get(sidecar.url + path, headers, _CHANGE_S, method, body)
            while again and answer is None:
                await asyncio.sleep(1.0)
                answer = await http_get(sidecar.url + path, headers, _CHANGE_S, method, body)
            status = None if answer is None else answer.status
            self._world.note(f"{method} {path} at {sidecar.name}: {status}")
            runs_on = ran and process.runs and process.freezes == freezes
            if runs_on and not sidecar.is_stopping:
                self._world.claims.changed(sidecar, self._world.now() - began)
            return status

        async def change() -> None:
            status = await ask()
            for _ in range(_MOST_REFUSED):
                if status != _UNAUTHORIZED:
                    break
                # It has not read the new token yet.
                await asyncio.sleep(1.0)
                status = await ask()
            # Without an answer it may be done, or be done later.
            if status in {None, 200}:
                done()

        self._world.errand(change())

    def _reload(self, fault: Fault) -> End:
        self._world.sidecars[fault.target].reload()
        return _nothing


def _cut(sent: bytes) -> bytes:
    return sent[: len(sent) // 2]


def _nothing() -> None:
    """It has happened."""
