"""What all scenarios have in common: a cluster with the jar, sidecars, producers, and the watch.

A scenario is a subclass of ``Scene``: which brokers and producers there are, and what happens
beside them. ``play`` starts everything, lets it happen, and ends everything; the logs are kept.
"""

import asyncio
import shutil
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.series import Series
from kafka_lab.sidecar_processes import start_sidecars
from kafka_lab.waiting import deadline, until
from sidecar.errors import ClusterError
from tests.chaos.callbacks import CallbackWatch
from tests.chaos.course import Producer, Watched
from tests.chaos.found import callback_errors, ended_tasks, tracebacks
from tests.chaos.schedule import clock
from tests.chaos.watch import Watch

FIRST_BYTES_S: Final = 30.0

Say = Callable[[str], None]


class Traffic(Protocol):
    """What producers report."""

    @property
    def acknowledged_bytes(self) -> int:
        """Of records, so far."""
        ...

    @property
    def failed_records(self) -> int:
        """Given up, so far."""
        ...

    @property
    def last_failure(self) -> str | None:
        """Why the last of them was; None without any."""
        ...

    @property
    def longest_throttle_s(self) -> float:
        """The longest throttle time that a broker reported."""
        ...

    @property
    def samples(self) -> Series:
        """The acknowledged bytes so far, ``time.monotonic()`` seconds."""
        ...


Running = tuple[str, float, Traffic]
"""A producer's kind, its rate in bytes a second, and what it reports."""


class Scene:
    """A scenario on a real cluster.

    Attributes:
        course: gets what is seen; it is whole also when ``play`` is cancelled.
        cluster: once it is up.
        callbacks: those of its brokers.
        watch: likewise, once it runs.
        topics: name -> the replicas of each partition.
        settings: of the sidecars.
    """

    topics: ClassVar[Mapping[str, Sequence[Sequence[int]]]]
    settings: ClassVar[Mapping[str, str]]
    cluster: Cluster
    callbacks: CallbackWatch
    watch: Watch

    def __init__(self, course: Watched, say: Say) -> None:
        """Nothing is started yet; ``say`` is called with each event, in words."""
        self.course = course
        self._say = say
        self._began = 0.0

    def make_cluster(self) -> Cluster:
        """The cluster, not yet entered."""
        raise NotImplementedError

    def producing(self) -> AbstractAsyncContextManager[list[Running]]:
        """The producers."""
        raise NotImplementedError

    def beside(self) -> list[Coroutine[Any, Any, None]]:
        """What happens beside them, until the run is over."""
        raise NotImplementedError

    async def fill(self) -> None:
        """Fills volumes before the sidecars start."""

    def since(self) -> Mapping[str, float]:
        """Process -> since when it has run undisturbed."""
        return {
            f"{role} {key}": 0.0 for role in ("broker", "sidecar") for key in self.cluster.brokers
        }

    def over(self) -> str:
        """Why nothing that follows is worth a look; "" while it is."""
        return ""

    def now(self) -> float:
        """Seconds since the beginning of the run."""
        return time.monotonic() - self._began

    def note(self, words: str) -> None:
        """Something has happened."""
        self.course.events.append((self.now(), words))
        self._say(f"{clock(self.now())}  {words}")

    async def play(self, out: Path) -> None:
        """Start everything, let it happen, and end everything.

        Args:
            out: a folder for the logs.

        Raises:
            ClusterError: the scene can't be set.
        """
        async with AsyncExitStack() as stack:
            self.cluster = cluster = await stack.enter_async_context(self.make_cluster())
            if not cluster.volumes_are_real:
                raise ClusterError(f"this needs real volumes: {cluster.isolation.why_not}")
            # Before the cluster's folder is removed, however this ends.
            stack.callback(self._read_logs, out)
            async with Admin(cluster.bootstrap) as admin:
                for topic, replicas in self.topics.items():
                    await admin.create_topic(topic, assignment=replicas)
            await self.fill()
            await start_sidecars(cluster, dict(self.settings))
            self.callbacks = await stack.enter_async_context(CallbackWatch())
            for broker in cluster.brokers.values():
                self.callbacks.follow(broker.id, broker.pid)
            async with deadline(FIRST_BYTES_S, "a callback did not read its sidecar"):
                await until(self._callbacks_read)
            producers = await stack.enter_async_context(self.producing())
            async with deadline(FIRST_BYTES_S, "a producer had nothing acknowledged"):
                # What happens first is 10 s later: until then they are at their rate, or never.
                await until(lambda: all(each.acknowledged_bytes > 0 for _, _, each in producers))
            self._began = time.monotonic()
            try:
                await self._run()
            finally:
                self.course.producers = [self._as_data(*each) for each in producers]

    def _callbacks_read(self) -> bool:
        seen = [self.callbacks.seen(broker_id) for broker_id in self.cluster.brokers]
        return all(each is not None and each.source == "SIDECAR" for each in seen)

    async def _run(self) -> None:
        beside = self.beside()
        self.watch = Watch(
            self.course,
            self.cluster,
            self.callbacks,
            self.since(),
            now=self.now,
            is_over=lambda: bool(self.over()),
        )
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in beside]
            watching = group.create_task(self.watch.run(), name="watch")
            await asyncio.wait({watching}, timeout=self.course.duration_s)
            if why := self.over():
                self.note(why)
            for task in (watching, *tasks):
                task.cancel()

    def _as_data(self, name: str, rate: float, traffic: Traffic) -> Producer:
        # A copy: librdkafka's thread adds to it meanwhile.
        acknowledged = Series((at - self._began, value) for at, value in list(traffic.samples))
        given_up = traffic.failed_records, traffic.last_failure
        return Producer(name, rate, acknowledged, traffic.longest_throttle_s, *given_up)

    def _read_logs(self, out: Path) -> None:
        """Keep the logs, and look for what none should say."""
        folder, course = self.cluster.folder, self.course
        if folder is None:
            return
        for log in sorted([*folder.glob("*.log"), *folder.glob("sidecar-*/*.log")]):
            name = str(log.relative_to(folder)).replace("/", "-")
            shutil.copyfile(log, out / name)
            text = log.read_text(errors="replace")
            if name.startswith("sidecar"):
                course.tracebacks += tracebacks(name, text)
                course.ended += [(course.ran_s, line) for line in ended_tasks(name, text)]
            else:
                course.tracebacks += callback_errors(name, text)
