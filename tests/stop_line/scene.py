"""Sets the scene: one broker with a volume of 512 MB, a sidecar, and three kinds of producers.

All write to one partition, 6 MB/s together: librdkafka with a message time-out of 4 s, which dials
anew when a pause is longer; Kafka's own client, which waits on its connections; and clients that
open a connection for every request. The broker leaks a tenth of the rate before, ten times what it
does by default, so that the stop line is reached once or twice a minute.

Example: ``await play(course, cleanings, out, say)`` fills course, a ``Course`` of the arm that is
asked for.
"""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kafka_lab.admin import Admin
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.scenario import INTERVAL, MINIMUM_INTERVAL
from kafka_lab.sidecar_processes import start_sidecars
from kafka_lab.traffic import Traffic
from kafka_lab.waiting import deadline, until
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError
from tests.chaos.callbacks import CallbackWatch
from tests.chaos.found import callback_errors, ended_tasks, tracebacks
from tests.chaos.schedule import clock
from tests.stop_line.cleaner import Cleaner, Cleaning
from tests.stop_line.course import REFUSALS, Arm, Bound, Course, Figures, Look, Sent
from tests.support.diallers import Diallers
from tests.support.java_traffic import JavaTraffic

VOLUME_BYTES: Final = 512_000_000
LIMIT_BYTES: Final = 150_000_000
LINE_BYTES: Final = 120_000_000
BYTES_PER_S: Final = 2e6
"""Of all producers of one kind."""

_KINDS: Final = 3
_REQUEST_BYTES: Final = 1_000_000
_REQUEST_THREADS: Final = 4
"""The demo's brokers'."""
BOUND: Final = Bound(
    bytes_per_s=_KINDS * BYTES_PER_S,
    delays_s=0.75,
    request_threads=_REQUEST_THREADS,
    request_bytes=_REQUEST_BYTES,
)
"""A quarter of a second until the broker's next look, and half a second until that is in force."""

_ARMS: Final = {Arm.AUTHORIZER: REFUSING_PROPERTIES, Arm.CALLBACK: {}}
_PREFIX: Final = "client.quota.callback.sidecar."
_LEAK: Final = {f"{_PREFIX}leak.ratio": "0.1"}
_SETTINGS: Final = {
    "SIDECAR_STORAGE_CHECK_INTERVAL": INTERVAL,
    "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": MINIMUM_INTERVAL,
    "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(LIMIT_BYTES),
    "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_BYTES": str(LINE_BYTES),
    # A tenth of the rate fills what is left in minutes: that is to be no emergency yet.
    "SIDECAR_THROTTLE_EMERGENCY_HORIZON": "PT30S",
}
_TOPIC: Final = "stop-line"
_FILLED_BYTES: Final = LIMIT_BYTES + 100_000_000
"""Available when the run begins: at 6 MB/s the limit is reached later than a quota window takes."""
_FILL_BYTES_PER_S: Final = 100e6
_CLIENTS: Final = 4
_DIALLED_BYTES: Final = 500_000
_LOOK_S: Final = 0.2
_TIMEOUT_S: Final = 60.0
_ADMIN_TIMEOUT_S: Final = 5.0
_RETRY_S: Final = 0.5

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Producers:
    timing_out: Sequence[Traffic]
    java: JavaTraffic
    dialling: Diallers

    @property
    def sent(self) -> list[Sent]:
        """What they came to so far."""
        timed_out = self.timing_out
        given_up = self.dialling.requests - self.dialling.acknowledged_bytes // _DIALLED_BYTES
        return [
            Sent(
                "librdkafka, time-out of 4 s",
                BYTES_PER_S,
                sum(each.acknowledged_bytes for each in timed_out),
                sum(each.failed_records for each in timed_out),
            ),
            Sent("Java", BYTES_PER_S, self.java.acknowledged_bytes, self.java.failed_records),
            Sent(
                "a connection for every request",
                BYTES_PER_S,
                self.dialling.acknowledged_bytes,
                max(0, given_up),
            ),
        ]


async def play(course: Course, cleanings: Sequence[Cleaning], out: Path, say: Say) -> None:
    """Start everything, let the volume fill, and end everything.

    Args:
        course: gets what is seen; it is whole also when this is cancelled.
        cleanings: in turn.
        out: a folder for the logs.
        say: called with each event, in words.

    Raises:
        ClusterError: the scene can't be set.
    """
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(_cluster(course.arm))
        if not cluster.volumes_are_real:
            raise ClusterError(f"this needs a real volume: {cluster.isolation.why_not}")
        # Before the cluster's folder is removed, however this ends.
        stack.callback(_read_logs, course, cluster, out)
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic(_TOPIC, assignment=[[0]])
        await _fill(cluster)
        await start_sidecars(cluster, _SETTINGS)
        callbacks = await stack.enter_async_context(CallbackWatch(tuple(REFUSALS)))
        callbacks.follow(0, cluster.brokers[0].pid)
        async with deadline(_TIMEOUT_S, "the callback did not hear from its sidecar"):
            await until(lambda: (callbacks.figures(0) or {}).get("Source") == "SIDECAR")
        producers = await stack.enter_async_context(_producing(cluster))
        try:
            await _run(course, cleanings, cluster, callbacks, say)
        finally:
            course.sent = producers.sent


async def _run(
    course: Course,
    cleanings: Sequence[Cleaning],
    cluster: Cluster,
    callbacks: CallbackWatch,
    say: Say,
) -> None:
    began = time.monotonic()
    total, _ = await cluster.usage(0, 0)

    def note(words: str) -> None:
        now = time.monotonic() - began
        course.events.append((now, words))
        say(f"{clock(now)}  {words}")

    async def retain(keep: int) -> None:
        while True:
            try:
                async with Admin(cluster.bootstrap, _ADMIN_TIMEOUT_S) as admin:
                    await admin.set_topic_config(_TOPIC, {"retention.bytes": str(keep)})
            except ClusterError:
                await asyncio.sleep(_RETRY_S)
            else:
                return

    cleaner = Cleaner(
        cleanings,
        total,
        course.line_bytes,
        available=lambda: course.looks[-1].available if course.looks else total,
        retain=retain,
        note=note,
    )
    async with asyncio.TaskGroup() as group:
        cleaning = group.create_task(cleaner.run(), name="cleaner")
        watching = group.create_task(_watch(course, cluster, callbacks, began), name="watch")
        await asyncio.wait({watching}, timeout=course.duration_s)
        if course.ended is not None:
            note("the broker has ended")
        for task in (watching, cleaning):
            task.cancel()


async def _watch(course: Course, cluster: Cluster, callbacks: CallbackWatch, began: float) -> None:
    """Until the broker has ended: what follows is worth no look."""
    seen: Any = None
    while course.ended is None:
        _, available = await cluster.usage(0, 0)
        now = round(time.monotonic() - began, 2)
        course.looks.append(Look(now, available, cluster.is_running(0)))
        figures = callbacks.figures(0)
        if figures is not None and figures is not seen:
            seen = figures
            refused = {name: int(figures[name]) for name in REFUSALS}
            longest_s = figures["LongestPauseMs"] / 1000
            course.figures.append(Figures(now, longest_s, figures["Emergency"], refused))
        await asyncio.sleep(_LOOK_S)


def _cluster(arm: Arm) -> Cluster:
    return Cluster(
        environ=os.environ,
        brokers=1,
        combined=True,
        volumes=1,
        volume_bytes=VOLUME_BYTES,
        broker_jars=[callback_jar()],
        properties={**CALLBACK_PROPERTIES, **_ARMS[arm], **_LEAK},
        properties_of=asks_its_sidecar,
    )


async def _fill(cluster: Cluster) -> None:
    """As if producers had written for a while."""
    async with (
        deadline(_TIMEOUT_S, "the volume was not filled"),
        Traffic(cluster.bootstrap, _TOPIC, bytes_per_s=_FILL_BYTES_PER_S),
    ):
        while (await cluster.usage(0, 0))[1] > _FILLED_BYTES:  # noqa: ASYNC110 - a file system
            await asyncio.sleep(_LOOK_S)


@asynccontextmanager
async def _producing(cluster: Cluster) -> AsyncIterator[_Producers]:
    async with AsyncExitStack() as stack:
        timing_out = [
            await stack.enter_async_context(
                Traffic(
                    cluster.bootstrap,
                    _TOPIC,
                    bytes_per_s=BYTES_PER_S / _CLIENTS,
                    config={"client.id": f"times-out-{number}", "message.timeout.ms": 4000},
                )
            )
            for number in range(_CLIENTS)
        ]
        java = await stack.enter_async_context(
            JavaTraffic(
                cluster.bootstrap,
                _TOPIC,
                bytes_per_s=BYTES_PER_S,
                connections=_CLIENTS,
                config={"buffer.memory": 4 << 20},
                heap_mb=256,
            )
        )
        dialling = await stack.enter_async_context(
            Diallers(
                cluster.bootstrap,
                _TOPIC,
                clients=_CLIENTS,
                record_bytes=_DIALLED_BYTES,
                every_s=_CLIENTS * _DIALLED_BYTES / BYTES_PER_S,
                config={"client.id": "dials"},
            )
        )
        yield _Producers(timing_out, java, dialling)


def _read_logs(course: Course, cluster: Cluster, out: Path) -> None:
    """Keep the logs, and look for what none should say."""
    if cluster.folder is None:
        return
    for log in sorted([*cluster.folder.glob("*.log"), *cluster.folder.glob("sidecar-*/*.log")]):
        name = str(log.relative_to(cluster.folder)).replace("/", "-")
        shutil.copyfile(log, out / name)
        text = log.read_text(errors="replace")
        if name.startswith("sidecar"):
            course.errors += [*tracebacks(name, text), *ended_tasks(name, text)]
        else:
            course.errors += callback_errors(name, text)
