"""Simulated brokers: they speak Kafka's protocol from bytes, in order on each connection.

What they say is true at the moment at which it is answered: the volumes of ``volumes.py``, one or
two a broker, and who is a member. A partition's replica lies on one of the volumes, by turns. A
broker that is slow answers DescribeLogDirs late, and whatever was sent behind it on the same
connection later still, as Kafka does. A twist changes what is sent.

Example: broker 1 takes 2.5 s for its log dirs; DescribeCluster, sent 10 ms after them on the same
connection, is answered after 2.5 s too.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from tests.simulation.loop import Process
from tests.simulation.net import Network
from tests.simulation.volumes import Volume
from tests.support.fake_broker import (
    DESCRIBE_LOG_DIRS,
    FakeBroker,
    FakeCluster,
    FakeConnection,
    FakeLogDir,
    FakeRequest,
)

FIRST_PORT: Final = 9092

_NO_TOPICS: Final = b"\x01\x00"
"""How a poll's request for log dirs ends: it names no topic. Null, for all, has a 0."""

_TOTAL: Final = b"\0total%d "
_AVAILABLE: Final = b"\0avail%d "

_ANSWERS: Final = 512
"""How many answers are kept: those of three sidecars near a limit, for a minute."""

Spoil = Callable[[bytes], bytes]
"""What a broker sends in place of an answer."""


class Served(NamedTuple):
    """What a broker answered.

    Attributes:
        asker: the process that asked; it may have given up before.
        at_s: when.
        available: log dir -> the bytes that were last known to be available.
        offline: the log dirs that were offline.
    """

    asker: str
    at_s: float
    available: Mapping[str, int]
    offline: Sequence[str]


class SimulatedBroker(FakeBroker):
    """A broker of the simulated cluster, where topics may not be described (Metadata).

    Attributes:
        number: which of the machines it is; its node id at first.
        process: what runs it; another one after each restart.
        volumes: what its log dirs lie on.
        service_s: how long it takes for an answer, seconds.
        slow_s: how much longer for its log dirs.
        spoil: what becomes of its answers; None: nothing.
        served: who asked for its log dirs, and what it was last answered, unless that is forgotten.
        answered_s: likewise, and when that was; nobody forgets it.
        answered: its last answers to anybody, oldest first.
        numbered_s: since when it has its node id.
        asking: who sent the request that it answers.
        left_bytes: what was available on each volume when it ended.
    """

    def __init__(
        self,
        number: int,
        cluster: FakeCluster,
        network: Network,
        volumes: Sequence[Volume],
        service_s: float,
    ) -> None:
        super().__init__(number, cluster, ())
        self.number = number
        self.port = FIRST_PORT + number
        self.volumes = volumes
        self.process = Process(self.name)
        self.process.kill()
        self.service_s = service_s
        self.slow_s = 0.0
        self.spoil: Spoil | None = None
        self.served: dict[str, Served] = {}
        self.answered_s: dict[str, float] = {}
        self.answered: deque[Served] = deque(maxlen=_ANSWERS)
        self.numbered_s = 0.0
        self.asking = ""
        self.left_bytes: list[int] = []
        self._forms: dict[tuple[object, ...], bytes] = {}
        self._network = network

    @property
    def name(self) -> str:
        """As faults and messages call it."""
        return f"broker {self.number}"

    def volume_of(self, partition: int) -> Volume:
        """The volume with the replica of a partition."""
        return self.volumes[(self.number + partition) % len(self.volumes)]

    @property
    def is_running(self) -> bool:
        """Whether it serves anybody now."""
        return self.process.runs

    def boot(self) -> None:
        """Starts to listen, as a new process."""
        self.process = Process(self.name)
        loop = asyncio.get_running_loop()
        self.process.context.run(
            lambda: self._network.serve(
                lambda: OrderedConnection(self, loop), self.cluster.host, self.port
            )
        )

    def kill(self) -> None:
        """Ends at once, if it has not ended before."""
        if self.process.is_alive:
            self.left_bytes = [volume.available_bytes for volume in self.volumes]
        self.process.kill()
        self._network.lose(self.process)
        self.connections.clear()

    def renumber(self, broker_id: int) -> "FormerBroker":
        """Gives it another node id; the registration of the one it had remains."""
        former = FormerBroker(self)
        self.broker_id = broker_id
        self.numbered_s = asyncio.get_running_loop().time()
        # An answer has no node id: a list of then leads to this address for the former one too.
        return former

    def answer(self, request: FakeRequest) -> bytes:
        """The answer's body."""
        self.requests.clear()
        if request.api_key == DESCRIBE_LOG_DIRS:
            polls = request.body.endswith(_NO_TOPICS)
            answer = self.cluster.answerers.get(DESCRIBE_LOG_DIRS)
            if not polls and answer is not None:
                return answer(self, request)
            return self._log_dirs(request.api_version, () if polls else ("any",))
        return super().answer(request)

    def _log_dirs(self, version: int, topics: tuple[str, ...]) -> bytes:
        """Encoded once, with marks for the sizes, since these differ in almost every answer."""
        states = [(each.is_offline, each.is_unreadable) for each in self.volumes]
        key = version, *states, bool(topics)
        form = self._forms.get(key)
        if form is None:
            self.log_dirs = tuple(
                FakeLogDir(volume.log_dir, -1, -1, error_code=56 if volume.is_offline else -1)
                if volume.is_offline or volume.is_unreadable
                else FakeLogDir(
                    volume.log_dir,
                    int.from_bytes(_TOTAL % number, "big"),
                    int.from_bytes(_AVAILABLE % number, "big"),
                    topics=topics,
                )
                for number, volume in enumerate(self.volumes)
            )
            form = self._forms[key] = self._describe_log_dirs(version)
        for number, volume in enumerate(self.volumes):
            form = form.replace(_TOTAL % number, volume.total_bytes.to_bytes(8, "big"))
            form = form.replace(_AVAILABLE % number, volume.available_bytes.to_bytes(8, "big"))
        return form


class FormerBroker(FakeBroker):
    """A node id that no broker has any more: registered, and fenced, until it is unregistered.

    Attributes:
        name: of the broker that had it.
        volumes: what its log dirs lie on.
        served: as the broker's.
        answered_s: likewise.
        answered: likewise.
        numbered_s: likewise.
    """

    def __init__(self, broker: SimulatedBroker) -> None:
        super().__init__(broker.broker_id, broker.cluster, (), fenced=True, port=broker.port)
        self.name = broker.name
        self.volumes = broker.volumes
        self.served = broker.served
        self.answered_s = broker.answered_s
        self.answered = broker.answered
        self.numbered_s = broker.numbered_s
        self._left_bytes = broker.left_bytes

    @property
    def shown_bytes(self) -> list[int]:
        """The least of each volume that it last showed to anybody, or had when it ended."""
        return [
            min(
                [left, *(each.available.get(volume.log_dir, left) for each in self.served.values())]
            )
            for volume, left in zip(self.volumes, self._left_bytes, strict=True)
        ]


class OrderedConnection(FakeConnection):
    """One client, whose requests are answered one after another."""

    def __init__(self, broker: SimulatedBroker, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(broker)
        self._of = broker
        self._loop = loop
        self._waiting: deque[bytes] = deque()

    def _handle(self, frame: bytes) -> None:
        self._waiting.append(frame)
        if len(self._waiting) == 1:
            self._next()

    def _next(self) -> None:
        (key,) = struct.unpack_from(">h", self._waiting[0], 4)
        slow_s = self._of.slow_s if key == DESCRIBE_LOG_DIRS else 0.0
        self._loop.call_later(self._of.service_s + slow_s, self._serve)

    def _told(self, asker: str, before: Served | None, now_s: float) -> Served:
        """An answer; a log dir without sizes has those of before."""
        known = {} if before is None else before.available
        available = {
            each.log_dir: known.get(each.log_dir, each.total_bytes)
            if each.is_offline or each.is_unreadable
            else each.available_bytes
            for each in self._of.volumes
        }
        offline = [each.log_dir for each in self._of.volumes if each.is_offline]
        return Served(asker, now_s, available, offline)

    def _serve(self) -> None:
        spoil = self._of.spoil
        peer = self.transport.peer.process  # type: ignore[attr-defined] # a Pipe
        (key,) = struct.unpack_from(">h", self._waiting[0], 4)
        polls = key == DESCRIBE_LOG_DIRS and self._waiting[0].endswith(_NO_TOPICS)
        if polls and spoil is None:
            now_s, answered = self._loop.time(), self._of.answered
            own = self._told(peer.name, self._of.served.get(peer.name), now_s)
            self._of.served[peer.name] = own
            self._of.answered_s[peer.name] = now_s
            # What has no sizes now was known last to whoever asked last while it had some.
            answered.append(self._told(peer.name, answered[-1] if answered else None, now_s))
        self._of.asking = peer.name
        self._of.twist = None if spoil is None else lambda _, __, sent: spoil(sent)
        super()._handle(self._waiting[0])
        self._waiting.popleft()
        if self._waiting and not self.transport.is_closing():
            self._next()
