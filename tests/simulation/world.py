"""The simulated world: brokers, sidecars, callbacks, clients and faults, all of one seed.

It has one topic, of as many partitions as brokers; each partition has a replica on every broker, on
its one volume, or in half of the worlds on one of its two. Clients append to a partition's leader,
followers copy, and an operator frees space some time after a volume has violated; in half of the
worlds brokers also delete what is beyond a size, each at moments of its own, as retention does. A
log dir whose volume is full goes offline. A broker without another one ends, as Kafka's does, and
is started when space is free. The controller fences a broker that was silent for ``SESSION_S``, and
another one leads its partitions then.
Machines are in three zones, a broker and its sidecar in one, and any ways between zones may be cut.
Sidecars that follow observers know their zones, so that these are in different ones.
A broker that is cut off from the controller is fenced too, and its list of brokers gets out of
date.
Callbacks ask their own sidecar alone, or in half of the worlds all of them. In half of them brokers
have the authorizer too, and then one client at least opens a connection for every request. Half of
them have a soft limit, and half a release margin, each by a chance of its own.

After ``duration_s`` faults have ended and space is free: what must be right again then is
``claims.py``'s, as is all that must hold at each step.

Example: ``run(Plan(1, 3600.0))`` is an hour in some seconds; its trace is the same each time.
"""

import asyncio
import hashlib
import logging
import math
import random
import tempfile
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from kio.schema.describe_client_quotas.v1.response import DescribeClientQuotasResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta

from sidecar.kafka.quota_messages import DESCRIBE_CLIENT_QUOTAS_KEY
from tests.auditor import audit
from tests.simulation.brokers import FormerBroker, SimulatedBroker
from tests.simulation.callback import Callback, Request
from tests.simulation.claims import Claims
from tests.simulation.clients import Client, Patience, clients, hasty_client
from tests.simulation.faults import Fault, Kind, schedule, zone_of
from tests.simulation.following import KeptDocument
from tests.simulation.http_get import http_get
from tests.simulation.injector import Injector
from tests.simulation.loop import VirtualLoop, current_process
from tests.simulation.net import Network
from tests.simulation.past import EMERGENCY_PAUSE_MAX_S, EYES_S
from tests.simulation.recorder import Recorder
from tests.simulation.refusals import Refusal
from tests.simulation.sidecars import FIRST_PORT as SIDECAR_PORT
from tests.simulation.sidecars import SimulatedSidecar
from tests.simulation.situations import Reached
from tests.simulation.topics import SimulatedTopics
from tests.simulation.turns import Turns
from tests.simulation.volumes import Volume
from tests.support.fake_broker import FakeCluster, encode
from tests.support.fake_configs import FakeConfigs

SESSION_S: Final = 9.0
"""broker.session.timeout.ms."""
UNFENCED_S: Final = 1.5
"""From a broker's start to its first heartbeat that counts."""
CATCH_UP_BYTES_PER_S: Final = 50_000_000
"""What a follower copies that was away."""
MB: Final = 1_000_000

_NO_QUOTAS: Final = encode(
    DescribeClientQuotasResponse(
        throttle_time=i32Timedelta.parse(timedelta(0)),
        error_code=ErrorCode.none,
        error_message=None,
        entries=(),
    )
)
_ANOTHER_CLUSTER: Final = "another-cluster"
_LAST_EVENTS: Final = 50
_CHECK_S: Final = 0.5
_LOOK_S: Final = EYES_S
"""How often a callback looks at its broker's own volume."""
_WITH_PEERS: Final = 0.25
"""So many worlds' sidecars ask each other for producer ids."""
_WITH_FEW_OBSERVERS: Final = 0.5
"""So many of these worlds have fewer observers than sidecars, which the others follow."""
_WITH_OTHERS: Final = 0.5
"""So many worlds' callbacks ask the other brokers' sidecars too."""
_WITH_AUTHORIZER: Final = 0.5
"""In so many worlds brokers have the authorizer, which refuses what no pause stops."""
_WITH_STOP_LINE: Final = 0.5
"""So many worlds' sidecars have a stop line."""
_WITH_SOFT_LIMIT: Final = 0.5
"""So many worlds' sidecars have a soft limit: volumes come to the limit later, and some never."""
_WITH_MARGIN: Final = 0.5
"""So many worlds' limits have a release margin."""
_WITH_EMERGENCIES: Final = 0.5
"""In so many worlds brokers pause clients for longer where a volume fills all the same: with the
default horizon nearly each throttle of volumes so small is such an emergency."""
_WITH_TWO_VOLUMES: Final = 0.5
"""In so many worlds brokers have two volumes, with partitions on both."""
_WITH_RETENTION: Final = 0.5
"""In so many worlds brokers delete old segments by themselves."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated.

    Attributes:
        seed: decides all else.
        duration_s: for how long there are faults.
        brokers: how many brokers, and sidecars, there are.
        spacing_s: the mean time between two faults.
        faults: in place of the seed's own; None: the seed's own.
        calms: whether the world goes on until all is well again.
        relief: whether sidecars make room.
    """

    seed: int
    duration_s: float
    brokers: int = 3
    spacing_s: float = 60.0
    faults: Sequence[Fault] | None = None
    calms: bool = True
    relief: bool = False

    def schedule(self) -> Sequence[Fault]:
        """The faults."""
        if self.faults is not None:
            return self.faults
        return schedule(self.seed, self.duration_s, self.spacing_s, self.brokers)


@dataclass(frozen=True, slots=True)
class Report:
    """What a run showed.

    Attributes:
        violations: of claims, in words; none is good.
        events: the last ones, in words.
        digest: of the whole trace.
        figures: what was counted, by name.
        simulated_s: how long the world was, with its end.
        reached: how often each situation began, by name.
    """

    violations: Sequence[str]
    events: Sequence[str]
    digest: str
    figures: dict[str, float]
    simulated_s: float
    reached: Mapping[str, int]


@dataclass(slots=True)
class Partition:
    """A partition: who leads it, and what each replica that is away has not copied yet."""

    leader: int
    behind: dict[int, int] = field(default_factory=dict)


def run(plan: Plan) -> Report:
    """Runs a plan in a loop of its own."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_run(plan, loop))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _run(plan: Plan, loop: VirtualLoop) -> Report:
    try:
        return await World(plan, loop).run()
    finally:
        loop.end()


def _asks_others(seed: int) -> bool:
    """Whether a world's callbacks ask all sidecars: by a chance of its own, as peers do."""
    return random.Random(f"others {seed}").random() < _WITH_OTHERS


def _refuses(seed: int) -> bool:
    """Whether a world's brokers have the authorizer, likewise."""
    return random.Random(f"an authorizer {seed}").random() < _WITH_AUTHORIZER


def _observers(seed: int, sidecars: int) -> int | None:
    """How many sidecars of a world with peers ask all brokers, likewise; None: the default."""
    chance = random.Random(f"observers {seed}")
    if chance.random() >= _WITH_FEW_OBSERVERS:
        return None
    return chance.randrange(1, sidecars)


def _has_two_volumes(seed: int) -> bool:
    """Whether a world's brokers have two volumes, likewise."""
    return random.Random(f"two volumes {seed}").random() < _WITH_TWO_VOLUMES


def _volumes(seed: int, broker: int, first: Volume, largest: int) -> list[Volume]:
    """The volumes of a broker: the first one alone, or one more."""
    volumes = [first]
    if _has_two_volumes(seed):
        share = random.Random(f"second volume {seed} {broker}").uniform(0.6, 1.0)
        volumes.append(Volume("/var/lib/kafka-1", int(largest * share), first.limit_bytes, broker))
    return volumes


def _has_emergencies(seed: int) -> bool:
    return random.Random(f"emergencies {seed}").random() < _WITH_EMERGENCIES


def _stop_bytes(seed: int, limit_bytes: int) -> int | None:
    """The stop line of a world, if it has one: by a chance of its own, as peers are."""
    chance = random.Random(f"stop {seed}")
    if chance.random() >= _WITH_STOP_LINE:
        return None
    return int(limit_bytes * chance.uniform(0.5, 0.95))


def _margin_bytes(seed: int, room_bytes: int) -> int:
    """The release margin of a world's limit, of so much room above it; 0: none."""
    chance = random.Random(f"release margin {seed}")
    if chance.random() >= _WITH_MARGIN:
        return 0
    return int(room_bytes * chance.uniform(0.05, 0.5))


def _soft_limit(seed: int, least_bytes: int, most_bytes: int) -> tuple[int, float] | None:
    """The soft limit of a world, bytes, and its horizon, seconds; by a chance of its own."""
    chance = random.Random(f"soft limit {seed}")
    if chance.random() >= _WITH_SOFT_LIMIT:
        return None
    soft_bytes = least_bytes + int((most_bytes - least_bytes) * chance.uniform(0.2, 1.0))
    return soft_bytes, chance.choice([60.0, 300.0, 1800.0])


class World:
    """Everything there is.

    Attributes:
        plan: what is simulated.
        interval_s: the sidecars' check interval.
        brokers: by number, at first their node ids.
        sidecars: by the broker's number.
        callbacks: likewise, of the brokers that are alive.
        asks_others: whether callbacks ask all sidecars, not their own alone.
        has_slope: whether the sidecars have a soft limit.
        refuses: whether brokers have the authorizer.
        clients: all of them.
        former: the node ids that no broker has any more and nobody has unregistered.
        unlisted: the node ids that were unregistered and that a sidecar remembers from a list.
        unregistered_at: when the last of them was, or when the last sidecar had a list without it.
        partitions: by index.
        has_controller: whether there is one, that fences, unfences, and elects.
        controller: on which machine.
        passwords: what the brokers know, by user.
        claims: what must hold.
        reached: which situations it reaches.
        recorder: records what the auditor judges.
        topics: what sidecars make room in; None in a world without relief.
    """

    def __init__(self, plan: Plan, loop: VirtualLoop) -> None:
        chance = random.Random(f"world {plan.seed}")
        self.plan = plan
        self.loop = loop
        self.network = loop.network = Network(loop)
        self.passwords: dict[str, str] = {}
        self.cluster = FakeCluster(users=self.passwords)
        self.cluster.answer(DESCRIBE_CLIENT_QUOTAS_KEY, 1, lambda *_: _NO_QUOTAS)
        # A broker with a new id shows it, as its old one may be registered at the same address.
        FakeConfigs().of(self.cluster)
        self.interval_s = chance.choice([5.0, 10.0, 30.0])
        largest = int(chance.uniform(300, 2000)) * MB
        limit_bytes = int(largest * chance.uniform(0.1, 0.2))
        service_s = chance.choice([0.002, 0.02, 0.2])
        self.brokers = {
            number: SimulatedBroker(
                number,
                self.cluster,
                self.network,
                # One of them is full first.
                _volumes(
                    plan.seed,
                    number,
                    Volume(
                        "/var/lib/kafka",
                        int(largest * chance.uniform(0.6, 1.0)),
                        limit_bytes,
                        number,
                    ),
                    largest,
                ),
                service_s,
            )
            for number in range(plan.brokers)
        }
        stop_bytes = _stop_bytes(plan.seed, limit_bytes)
        # Half of the smallest volume is above both, so that an operator can free so much.
        most_bytes = int(0.28 * largest)
        margin_bytes = _margin_bytes(plan.seed, most_bytes - limit_bytes)
        soft_limit = _soft_limit(plan.seed, limit_bytes + margin_bytes, most_bytes)
        for volume in self.volumes():
            volume.stop_bytes = stop_bytes
            volume.soft_bytes = None if soft_limit is None else soft_limit[0]
            volume.margin_bytes = margin_bytes
        self.cluster.brokers.update(self.brokers)
        ports = ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers.values())
        environ = {
            "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": ports,
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(limit_bytes),
            "SIDECAR_STORAGE_CHECK_INTERVAL": f"PT{self.interval_s:.0f}S",
            "SIDECAR_THROTTLE_EMERGENCY_PAUSE_MAX": f"PT{EMERGENCY_PAUSE_MAX_S:.0f}S",
        }
        if not _has_emergencies(plan.seed):
            # A volume with no byte left is one all the same.
            environ["SIDECAR_THROTTLE_EMERGENCY_HORIZON"] = "PT0.001S"
        if stop_bytes is not None:
            environ["SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES"] = str(stop_bytes)
        if soft_limit is not None:
            soft_bytes, horizon_s = soft_limit
            environ["SIDECAR_STORAGE_PER_VOLUME_SOFT_LIMIT_MIN_AVAILABLE_BYTES"] = str(soft_bytes)
            environ["SIDECAR_THROTTLE_HORIZON"] = f"PT{horizon_s:.0f}S"
        if margin_bytes:
            environ["SIDECAR_STORAGE_RELEASE_MARGIN_BYTES"] = str(margin_bytes)
        self.topics = SimulatedTopics(self, largest) if plan.relief else None
        self.has_slope = soft_limit is not None
        self.has_observers = False
        # Of a chance of its own: what a seed drew before peers were simulated stays as it was.
        if random.Random(f"peers {plan.seed}").random() < _WITH_PEERS:
            urls = (f"http://127.0.0.1:{SIDECAR_PORT + number}" for number in self.brokers)
            environ["SIDECAR_PEERS"] = ",".join(urls)
            # The default is three, which are all sidecars of most worlds.
            self.has_observers = True
            count = _observers(plan.seed, plan.brokers)
            if count is not None:
                environ["SIDECAR_OBSERVERS"] = str(count)
        self._secrets = tempfile.TemporaryDirectory(prefix="simulation-")
        if self.topics is not None:
            environ |= self.topics.environ(Path(self._secrets.name))
        self.sidecars = {
            number: SimulatedSidecar(
                number,
                {**environ, "SIDECAR_ZONE": zone_of(number)} if self.has_observers else environ,
                self.network,
                chance,
                Path(self._secrets.name),
            )
            for number in self.brokers
        }
        self.passwords.update({each.user: each.password for each in self.sidecars.values()})
        self.callbacks: dict[int, Callback] = {}
        self.asks_others = _asks_others(plan.seed)
        self._kept: dict[int, KeptDocument | None] = {}
        self._wall_ms = dict.fromkeys(self.brokers, 0)
        self.former: dict[int, FormerBroker] = {}
        self.unlisted: dict[int, FormerBroker] = {}
        self.unregistered_at = -math.inf
        self.has_controller = True
        self.controller = 0
        self._lagging: dict[int, set[str]] = {number: set() for number in self.brokers}
        self.partitions = [Partition(number) for number in self.brokers]
        self.clients = clients(chance, len(self.partitions), hasty=chance.random() < 0.3)
        self.refuses = _refuses(plan.seed)
        if self.refuses and all(each.patience is not Patience.HASTY for each in self.clients):
            more = random.Random(f"hasty {plan.seed}")
            self.clients.append(hasty_client(more, len(self.clients), len(self.partitions)))
        self.claims = Claims(self)
        self.reached = Reached(self)
        self.recorder = Recorder(self)
        self._events: deque[str] = deque(maxlen=_LAST_EVENTS)
        self._digest = hashlib.sha256()
        self._errands: set[asyncio.Task[None]] = set()
        self._relief_s = chance.uniform(10.0, 2.0 * self.claims.reaction_s)
        self._retention = random.Random(f"retention {plan.seed}")
        self._full: list[Volume] = []
        self._gone_since: dict[int, float] = {}
        self._back_since: dict[int, float] = {}

    def discard(self) -> None:
        """Removes what a world has on the real disk; ``run`` does so too."""
        self._secrets.cleanup()

    def now(self) -> float:
        """Seconds since the world began."""
        return self.loop.now

    def note(self, text: str) -> None:
        """Adds an event to the trace."""
        # Where the secrets lie differs in each run, which has one trace.
        line = f"{self.now():10.3f} s  {text.replace(self._secrets.name, '')}"
        self._events.append(line)
        self._digest.update(line.encode())

    async def run(self) -> Report:
        """From the beginning to the end."""
        handler = _Log(self)
        # It warns of each login over PLAINTEXT.
        logging.getLogger("aiokafka").setLevel(logging.ERROR)
        root = logging.getLogger("sidecar")
        level, propagates = root.level, root.propagate
        root.addHandler(handler)
        root.setLevel(logging.INFO)
        root.propagate = False
        self.loop.set_exception_handler(lambda _, context: self.claims.unhandled(context))
        try:
            with nullcontext() if self.topics is None else self.topics.patched():
                await self._run()
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
            root.propagate = propagates
            self.discard()
        counted = {} if self.topics is None else self.topics.figures
        figures = {**self.claims.figures(), **counted}
        return Report(
            self.claims.violations,
            [*self._events],
            self._digest.hexdigest(),
            figures,
            self.now(),
            self.reached.counts,
        )

    async def _run(self) -> None:
        for broker in self.brokers.values():
            self.boot(broker)
        for sidecar in self.sidecars.values():
            sidecar.start(self.claims.watch)
        tasks = [
            asyncio.create_task(part, name=name)
            for name, part in (
                ("controller", self._control()),
                ("operator", self._relieve()),
                ("claims", self.claims.run()),
                ("recorder", self.recorder.run()),
                *((f"client {each.number}", self._produce(each)) for each in self.clients),
                *self._retaining(),
                *([] if self.topics is None else [("topics", self.topics.run())]),
            )
        ]
        injector = Injector(self, self.plan.schedule())
        await injector.run(self.plan.duration_s)
        if self.plan.calms and not self.claims.violations:
            await self._calm_down()
        for task in tasks:
            task.cancel()
        for task, ended in zip(
            tasks, await asyncio.gather(*tasks, return_exceptions=True), strict=True
        ):
            if isinstance(ended, Exception):
                self.claims.broken(f"{task.get_name()} ended: {ended!r}")
        for finding in audit(self.recorder.trace):
            self.claims.broken(f"by the auditor, at {finding}")
        await self._stop()

    async def _calm_down(self) -> None:
        """The second phase: no fault is left, space is free, and all must be well soon."""
        self.note("faults have ended")
        await self.claims.calm()
        if self.topics is not None:
            self.topics.ended()

    async def _stop(self) -> None:
        for sidecar in self.sidecars.values():
            # A broken claim ends a world in the midst of faults.
            sidecar.process.thaw()
            sidecar.disk.mend()
            self.network.answer_names(sidecar.name)
            sidecar.stop()
        await asyncio.sleep(5.0)
        self.claims.stopped()
        for broker in self.brokers.values():
            broker.kill()

    def errand(self, part: Coroutine[None, None, None]) -> None:
        """Lets somebody do something beside all else."""
        task = asyncio.get_running_loop().create_task(part)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def volumes(self) -> Iterator[Volume]:
        """All volumes."""
        return (volume for broker in self.brokers.values() for volume in broker.volumes)

    def volume_of(self, fault: Fault) -> Volume:
        """The volume of a fault of a log dir."""
        volumes = self.brokers[fault.target].volumes
        return volumes[int(fault.other) % len(volumes)]

    def free_all(self) -> None:
        """An operator frees space on every volume."""
        for volume in self.volumes():
            half = volume.total_bytes // 2
            self._retain_less(volume, max(0, volume.used_bytes - half))
        for partition in self.partitions:
            partition.behind.clear()
        full, self._full = self._full, []
        for volume in full:
            broker = self.brokers[volume.broker]
            self.claims.undisturb(volume.name)
            if volume.is_offline:
                self.online(volume)
            else:
                self.claims.undisturb(broker.name)
                self.boot(broker)

    def _retain_less(self, volume: Volume, count: int) -> None:
        """The oldest bytes on a volume are removed."""
        volume.free(count, self.now())
        if self.topics is not None:
            self.topics.retained(volume, count)

    def online(self, volume: Volume) -> None:
        """A log dir is well again, unless its volume is full.

        A broker that ended of it starts when there is space.
        """
        is_alive = self.brokers[volume.broker].process.is_alive
        volume.is_offline = is_alive and volume in self._full

    def step_wall(self, number: int, step_s: float) -> None:
        """The wall clock of a broker and of the sidecar beside it is set."""
        self.sidecars[number].step_s += step_s
        self._wall_ms[number] += round(step_s * 1000)
        if number in self.callbacks:
            self.callbacks[number].step_wall(round(step_s * 1000))

    def kill(self, broker: SimulatedBroker) -> None:
        """A broker's process ends."""
        broker.kill()
        callback = self.callbacks.pop(broker.number, None)
        if callback is not None:
            self._kept[broker.number] = callback.kept()
            callback.end()

    def _append_to(self, broker: SimulatedBroker, volume: Volume, count: int, cause: str) -> None:
        """Writes to a log dir; a full one goes offline, and ends a broker that has no other."""
        if volume.append(count, self.now(), cause):
            return
        self.note(f"{volume.name} is full; past the limit: {volume.past_bytes}")
        self.claims.full()
        self.claims.disturb(volume.name)
        self._full.append(volume)
        if all(each.is_offline or each is volume for each in broker.volumes):
            self.claims.disturb(broker.name)
            self.kill(broker)
        else:
            volume.is_offline = True
            self.move_leaders(broker.number, offline=True)

    def renumber(self, broker: SimulatedBroker) -> None:
        """A broker that was killed starts with another node id."""
        former = broker.renumber(broker.broker_id + len(self.brokers))
        if not broker.fenced:
            self._fence(broker, fenced=True)
        self.note(f"{broker.name} has node id {broker.broker_id}")
        self.former[former.broker_id] = former
        self.cluster.brokers[former.broker_id] = former
        self.cluster.brokers[broker.broker_id] = broker
        self.cluster.forget_answers()
        self.boot(broker)

    def unregister(self, broker_id: int) -> None:
        """An operator says that no broker has a node id any more."""
        former = self.former.pop(broker_id, None)
        if former is not None:
            self.recorder.unregistered(former)
            self.note(f"node id {broker_id} is unregistered")
            self.unregistered_at = self.now()
            self.unlisted[broker_id] = former
            del self.cluster.brokers[broker_id]
            self.cluster.forget_answers()

    def _note_unlisted(self) -> None:
        for broker_id in [*self.unlisted]:
            if any(each.lists(broker_id) for each in self.sidecars.values()):
                self.unregistered_at = self.now()
            else:
                del self.unlisted[broker_id]

    def all_registered(self) -> list[SimulatedBroker | FormerBroker]:
        """Whoever has a node id, and the node ids that nobody has any more."""
        return [*self.brokers.values(), *self.former.values()]

    def registered(self, broker_id: int) -> SimulatedBroker | FormerBroker | None:
        """Who has, or last had, a node id; None: nobody whom the cluster knows."""
        broker = self.cluster.brokers.get(broker_id)
        assert broker is None or isinstance(broker, SimulatedBroker | FormerBroker)
        return broker

    def advertise(self, broker: SimulatedBroker, port: int | None) -> None:
        """Lists have another port for a broker from now on; None: its own."""
        broker.advertised_port = port
        self.cluster.forget_answers()

    def stranger(self, broker: SimulatedBroker) -> SimulatedBroker:
        """A broker of another cluster, with the same node id, credentials and address."""
        cluster = FakeCluster(users=self.passwords, cluster_id=_ANOTHER_CLUSTER)
        cluster.answer(DESCRIBE_CLIENT_QUOTAS_KEY, 1, lambda *_: _NO_QUOTAS)
        if self.topics is not None:
            self.topics.of(cluster)
        volume = Volume("/var/lib/another", broker.volumes[0].total_bytes, 0, broker.number)
        stranger = SimulatedBroker(broker.number, cluster, self.network, [volume], broker.service_s)
        stranger.broker_id = broker.broker_id
        cluster.brokers[broker.broker_id] = stranger
        return stranger

    def is_on_slope(self) -> bool:
        """Whether a volume is between the soft limit and the limit, and none violates."""
        volumes = [*self.volumes()]
        is_low = any(each.available_bytes <= (each.soft_bytes or 0) for each in volumes)
        return is_low and all(each.violates_since is None for each in volumes)

    def move_leaders(self, away_from: int, *, offline: bool = False) -> None:
        """Other brokers lead what one led, or what lies on its log dirs that are offline."""
        others = [
            number
            for number, broker in self.brokers.items()
            if number != away_from and self._is_heard(broker) and not broker.fenced
        ]
        was = self.brokers[away_from]
        for index, partition in enumerate(self.partitions):
            if offline and not was.volume_of(index).is_offline:
                continue
            if partition.leader == away_from and others:
                partition.leader = others[index % len(others)]
                self.note(f"broker {partition.leader} leads partition {index}")
                if self.topics is not None:
                    self.topics.moved(index)

    def boot(self, broker: SimulatedBroker) -> None:
        """A broker starts, with its callback; not on a full volume, nor at an address in use."""
        is_full = any(each.broker == broker.number and not each.is_offline for each in self._full)
        is_taken = ("127.0.0.1", broker.port) in self.network.listeners
        if is_full or broker.process.is_alive or is_taken:
            return
        broker.boot()
        urls = [self.sidecars[broker.number].url]
        if self.asks_others:
            urls += [each.url for each in self.sidecars.values() if each.number != broker.number]
        kept, wall_ms = self._kept.get(broker.number), self._wall_ms[broker.number]
        callback = Callback(broker.broker_id, urls, self.now(), kept, wall_ms=wall_ms)
        self.callbacks[broker.number] = callback
        broker.process.start(self._follow(broker, callback), f"callback {broker.number}")
        broker.process.start(self._look(broker, callback), f"eyes {broker.number}")
        if callback.others:
            broker.process.start(self._ask_others(callback), f"others {broker.number}")

    async def _look(self, broker: SimulatedBroker, callback: Callback) -> None:
        """The callback's other thread: what its own volumes have, but for those offline."""
        while True:
            for volume in broker.volumes:
                if not volume.is_offline:
                    sizes = volume.available_bytes, volume.total_bytes
                    callback.see(*sizes, self.now(), volume.log_dir)
            await asyncio.sleep(_LOOK_S)

    async def _follow(self, broker: SimulatedBroker, callback: Callback) -> None:
        """The callback's thread: requests of its sidecar, and what expires."""
        inbox = asyncio.Event()
        before = ""
        while True:
            request = callback.next_request(self.now())
            if request is not None:
                self.errand(self._ask(callback, request, inbox))
            state = f"{callback.source(self.now())} {callback.factor(self.now()):g}"
            if state != before:
                self.note(f"callback {broker.number}: {state}")
                before = state
            wait_s = max(0.001, callback.next_wake(self.now()) - self.now())
            try:
                async with asyncio.timeout(min(wait_s, 10.0)):
                    await inbox.wait()
            except TimeoutError:
                pass
            inbox.clear()

    async def _ask(self, callback: Callback, request: Request, inbox: asyncio.Event) -> None:
        answer = await http_get(request.url, request.headers, request.timeout_s)
        if answer is None:
            callback.on_answer(request, None, {}, b"", self.now())
        else:
            callback.on_answer(request, answer.status, answer.headers, answer.body, self.now())
        inbox.set()

    async def _ask_others(self, callback: Callback) -> None:
        """The callback's third thread: other sidecars, by turns."""
        asked = callback.others
        if not asked:
            return
        turns = Turns(len(asked), self.now())
        while True:
            number = turns.next
            await asyncio.sleep(max(0.0, turns.due_s - self.now()))
            request = asked[number]
            answer = await http_get(request.url, request.headers, request.timeout_s)
            if answer is None:
                has_answered = callback.on_other(number, None, {}, b"", self.now())
            else:
                parts = answer.status, answer.headers, answer.body
                has_answered = callback.on_other(number, *parts, self.now())
            turns.ended(number, failed=not has_answered, now=self.now())

    async def _produce(self, client: Client) -> None:
        client.sent_until = self.now()
        while True:
            await asyncio.sleep(client.next_s(self.now()))
            partition = self.partitions[client.partition]
            leader = self.brokers[partition.leader]
            is_offline = leader.volume_of(client.partition).is_offline
            if not leader.is_running or is_offline or leader.number not in self.callbacks:
                await asyncio.sleep(1.0)
                continue
            client.dials()
            refusal = self._refusal(client, leader)
            if refusal is not None:
                await asyncio.sleep(client.refused_s(refusal.mutes_s))
                continue
            pause_s = self._append(client, partition, leader)
            if pause_s > 0.0:
                await asyncio.sleep(client.waits_s(pause_s))

    def _refusal(self, client: Client, leader: SimulatedBroker) -> Refusal | None:
        """Whether the leader refuses a request before anything of it is appended."""
        if not self.refuses:
            return None
        connection = client.number, client.connection
        refusal = self.callbacks[leader.number].refusal(*_names(client), connection, self.now())
        if refusal is not None:
            self.claims.refused(refusal)
        return refusal

    def _append(self, client: Client, partition: Partition, leader: SimulatedBroker) -> float:
        """Appends a request to all replicas; the pause that the client is given, seconds."""
        count = client.request_bytes
        for number, broker in self.brokers.items():
            volume = broker.volume_of(client.partition)
            does_copy = self._are_joined(number, leader.number) and not volume.is_offline
            if not broker.is_running or not does_copy:
                partition.behind[number] = partition.behind.get(number, 0) + count
                continue
            self._append_to(broker, volume, count, self.claims.cause(client, leader, volume))
        client.wrote()
        if self.topics is not None:
            self.topics.wrote(client.partition, count)
        if leader.number not in self.callbacks:
            return 0.0
        self.claims.landed(client, leader)
        pause_ms = self.callbacks[leader.number].charge(
            *_names(client), client.connection, count, self.now()
        )
        allowed_s = self.callbacks[leader.number].pause_max_s(self.now())
        self.claims.paused(client, pause_ms / 1000, allowed_s)
        self.recorder.charged(allowed_s)
        return pause_ms / 1000

    def _are_joined(self, one: int, other: int) -> bool:
        """Whether two brokers reach each other."""
        return self.network.are_joined(f"broker {one}", f"broker {other}")

    def _is_heard(self, broker: SimulatedBroker) -> bool:
        """Whether a broker sends heartbeats to the controller, and is answered."""
        return broker.is_running and self._are_joined(broker.number, self.controller)

    def lag(self, broker: SimulatedBroker, why: str) -> None:
        """A broker gets no more news of the cluster, which clients and sidecars still reach."""
        if not self._lagging[broker.number]:
            then = {key: each.fenced for key, each in self.cluster.brokers.items()}
            broker.list_of_then = then
            if self.topics is not None:
                self.topics.lags(broker)
        self._lagging[broker.number].add(why)

    def catch_up(self, broker: SimulatedBroker, why: str) -> None:
        """A reason not to get news has ended."""
        if why not in self._lagging[broker.number]:
            return
        self._lagging[broker.number].remove(why)
        if not self._lagging[broker.number]:
            broker.list_of_then = None
            if self.topics is not None:
                self.topics.catches_up(broker)
            self.cluster.forget_answers()

    def elect(self, number: int) -> None:
        """The controller is on another machine now."""
        self.controller = number
        self.cluster.controller_id = self.brokers[number].broker_id
        self.cluster.forget_answers()

    def _has_quorum(self, controller: int) -> bool:
        """Whether most machines, each with a voter, reach a controller."""
        reached = sum(self._are_joined(controller, number) for number in self.brokers)
        return 2 * reached > len(self.brokers)

    def _is_controlled(self) -> bool:
        """Whether there is a controller: one without a quorum gives way to one that has it."""
        if not self.has_controller:
            return False
        if not self._has_quorum(self.controller):
            others = [number for number in self.brokers if self._has_quorum(number)]
            if not others:
                return False
            self.note(f"the controller is on machine {others[0]}")
            self.elect(others[0])
        return True

    async def _control(self) -> None:
        """The controller: fences, unfences, and elects; and followers copy what they missed."""
        while True:
            await asyncio.sleep(_CHECK_S)
            self.reached.look()
            is_controlled = self._is_controlled()
            now = self.now()
            self._note_unlisted()
            for number, broker in self.brokers.items():
                if broker.is_running:
                    self._copy(number, broker)
                if not is_controlled:
                    continue
                if self._are_joined(number, self.controller):
                    self.catch_up(broker, Kind.ZONES_CUT)
                else:
                    self.lag(broker, Kind.ZONES_CUT)
                if self._is_heard(broker):
                    self._gone_since.pop(number, None)
                    if (
                        broker.fenced
                        and now - self._back_since.setdefault(number, now) > UNFENCED_S
                    ):
                        self._fence(broker, fenced=False)
                else:
                    self._back_since.pop(number, None)
                    gone_s = now - self._gone_since.setdefault(number, now)
                    if not broker.fenced and gone_s > SESSION_S:
                        self._fence(broker, fenced=True)
                        self.move_leaders(number)
                if broker.fenced:
                    self.move_leaders(number)

    def _copy(self, number: int, broker: SimulatedBroker) -> None:
        left = int(CATCH_UP_BYTES_PER_S * _CHECK_S)
        for index, partition in enumerate(self.partitions):
            volume = broker.volume_of(index)
            count = min(left, partition.behind.get(number, 0))
            if count and not volume.is_offline and self._are_joined(number, partition.leader):
                partition.behind[number] -= count
                left -= count
                self._append_to(broker, volume, count, "replication")

    def _fence(self, broker: SimulatedBroker, *, fenced: bool) -> None:
        self.note(f"{broker.name} is {'fenced' if fenced else 'unfenced'}")
        broker.fenced = fenced
        for each in self.brokers.values():
            if fenced and each.advertised_port == broker.port:
                # No sidecar can tell who answers at an address that is also a fenced broker's: it
                # may be of one that was replaced.
                self.advertise(each, None)
        self.cluster.forget_answers()
        # No sidecar reads a broker that is fenced.
        change = self.claims.disturb if fenced else self.claims.undisturb
        change(broker.name)

    async def _relieve(self) -> None:
        """An operator frees space a while after a volume began to violate."""
        while True:
            await asyncio.sleep(1.0)
            since = [each.held_since for each in self.volumes()]
            first = min((at for at in since if at is not None), default=None)
            if first is not None and self.now() - first > self._relief_s:
                self.note("space is freed")
                self.free_all()

    def _retaining(self) -> Iterator[tuple[str, Coroutine[None, None, None]]]:
        """Each broker's retention by size, by name; none in a world without."""
        chance = self._retention
        if chance.random() >= _WITH_RETENTION:
            return
        interval_s = chance.choice([30.0, 60.0, 300.0])
        # With the upper ones a volume violates before retention begins.
        share = chance.uniform(0.6, 0.95)
        for broker in self.brokers.values():
            begin_s = chance.uniform(0.0, interval_s)
            yield f"retention {broker.number}", self._retain(broker, share, begin_s, interval_s)

    async def _retain(
        self, broker: SimulatedBroker, share: float, begin_s: float, interval_s: float
    ) -> None:
        """Deletes what is beyond a share of each volume, each time a broker's cleaner looks.

        Source: log.retention.bytes, log.retention.check.interval.ms.
        """
        await asyncio.sleep(begin_s)
        while True:
            for volume in broker.volumes:
                count = volume.used_bytes - int(share * volume.total_bytes)
                if count > 0 and broker.is_running and not volume.is_offline:
                    self.note(f"{broker.name} deletes {count} bytes that are not retained")
                    self._retain_less(volume, count)
            await asyncio.sleep(interval_s)


def _names(client: Client) -> tuple[str, str]:
    """Its user, and its client-id."""
    return f"user-{client.number}", f"client-{client.number}"


class _Log(logging.Handler):
    """Adds what the sidecars log to the trace, and shows the claims each traceback."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        process = current_process()
        name = process.name if process is not None else "nobody"
        self._world.note(f"{name} {record.levelname}: {record.getMessage()}")
        if record.exc_info is not None or record.levelno >= logging.CRITICAL:
            text = logging.Formatter().format(record)
            self._world.claims.broken(f"{name} logged a traceback: {text}")
