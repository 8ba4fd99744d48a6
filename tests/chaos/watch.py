"""Looks at the real cluster once a second, and at its volumes five times as often.

Sidecars are asked over HTTP and callbacks by JMX; volumes by their own file systems, so that no
part is measured by itself. A process that does not answer within 0.7 s counts as silent.

Example: ``Watch(...).run()`` ends when a volume is full and nothing that follows is worth a look.
"""

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from kafka_lab.cluster import Cluster
from sidecar.http import HttpError, request
from tests.chaos.callbacks import CallbackWatch
from tests.chaos.course import Watched
from tests.chaos.samples import Sample, SidecarSight

_LOOKS: Final = 5
_ANSWER_S: Final = 0.7


class Watch:
    """Adds samples to a course.

    Attributes:
        available: broker id -> bytes available on its fullest volume, just now.
    """

    def __init__(
        self,
        course: Watched,
        cluster: Cluster,
        callbacks: CallbackWatch,
        since: Mapping[str, float],
        *,
        now: Callable[[], float],
        is_over: Callable[[], bool],
        look_s: float = 0.2,
    ) -> None:
        """Nothing is looked at yet.

        Args:
            course: gets the samples, and what ended by itself.
            cluster: what is looked at.
            callbacks: those of its brokers.
            since: process -> since when it has run undisturbed; one that is away has none.
            now: seconds since the beginning of the run.
            is_over: whether nothing that follows is worth a look.
            look_s: from one look at the volumes to the next; every fifth is a sample.
        """
        self.available: dict[int, int] = {}
        self._course = course
        self._cluster = cluster
        self._callbacks = callbacks
        self._since = since
        self._now = now
        self._is_over = is_over
        self._look_s = look_s
        self._ssl = ssl.create_default_context()
        self._ended: set[str] = set()

    async def run(self) -> None:
        """Until the run is over."""
        next_at = time.monotonic()
        while not self._is_over():
            asked = asyncio.create_task(self._ask(), name="sidecars")
            least: dict[int, int] = {}
            for _ in range(_LOOKS):
                await self._look()
                least = {
                    key: min(value, least.get(key, value)) for key, value in self.available.items()
                }
                next_at = max(next_at + self._look_s, time.monotonic())
                await asyncio.sleep(next_at - time.monotonic())
            self._add(least, await asked)
            self._look_for_the_dead()

    async def _look(self) -> None:
        for broker_id in self._cluster.brokers:
            volumes = range(len(self._cluster.brokers[broker_id].volumes))
            usages = [await self._cluster.usage(broker_id, each) for each in volumes]
            self.available[broker_id] = min(available for _, available in usages)

    def _add(self, least: Mapping[int, int], sidecars: Mapping[int, SidecarSight | None]) -> None:
        now = self._now()
        self._course.samples.append(
            Sample(
                round(now, 2),
                dict(self.available),
                dict(least),
                sidecars,
                {broker_id: self._callbacks.seen(broker_id) for broker_id in self._cluster.brokers},
                {process: round(now - since, 2) for process, since in self._since.items()},
            )
        )

    async def _ask(self) -> dict[int, SidecarSight | None]:
        ids = list(self._cluster.brokers)
        answers = await asyncio.gather(
            *(self._sidecar(self._cluster.brokers[broker_id].sidecar_url) for broker_id in ids)
        )
        return dict(zip(ids, answers, strict=True))

    async def _sidecar(self, url: str) -> SidecarSight | None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                ready, factor = await asyncio.gather(
                    request("GET", f"{url}/readyz", headers={}, ssl_context=self._ssl),
                    request("GET", f"{url}/v1/throttle-factor", headers={}, ssl_context=self._ssl),
                )
        except (OSError, HttpError):
            return None
        if factor.status != HTTPStatus.OK:
            return None
        document = json.loads(factor.body)
        return SidecarSight(
            is_ready=ready.status == HTTPStatus.OK,
            factor=document["factor"],
            source=document["source"],
        )

    def _look_for_the_dead(self) -> None:
        """Processes that have ended although no fault has taken them."""
        for process in list(self._since):
            role, number = process.split()
            ended = (
                not self._cluster.is_running(int(number))
                if role == "broker"
                else self._cluster.ended(process) is not None
            )
            if not ended:
                self._ended.discard(process)
            elif process not in self._ended:
                self._ended.add(process)
                self._course.ended.append((self._now(), f"{process} ended by itself"))
