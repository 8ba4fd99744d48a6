"""Whatever happens to sidecars, brokers and files: in the end every quota is as it was.

Two sidecars throttle by client quotas on two stock brokers. In each seed they are killed and
frozen, lose their state files, brokers are killed, one or both, space comes and goes, and a person
changes a quota. Then there is space, and everything runs.

``QUOTA_SEEDS=50`` plays 50 seeds, about a minute each. The same in virtual time is in
tests/sidecar/client_quotas/test_service.py.
"""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from kafka_lab.cluster import Cluster
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.kafka.quota_messages import Alteration
from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.throttle.quota_steps import is_rung
from tests.support.client_quotas import admin_of, quotas_of, remove_quotas
from tests.support.daemon import FULL_BYTES, Daemon, Start, settings
from tests.support.waiting import seen

SEEDS: Final = range(int(os.environ.get("QUOTA_SEEDS", "1")))
VALIDITY_S: Final = 10
LONGEST_S: Final = 150.0
"""For the restoring: the validity, and steps of 6 s from the floor."""

KEY: Final = "producer_byte_rate"
ETL: Final = Entity(client_id="etl")
BEFORE: Final[ClientQuotas] = {
    ETL: {KEY: 4e6, "consumer_byte_rate": 9e6},
    Entity("bob"): {KEY: 1e7},
    Entity("bob", "web"): {KEY: 5e5},
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


class Scene:
    """A cluster with two sidecars, and what may happen to them."""

    def __init__(
        self, kafka: Cluster, sidecars: list[Daemon], files: list[Path], seed: int
    ) -> None:
        self.expected = {entity: dict(own) for entity, own in BEFORE.items()}
        self.kafka = kafka
        self.happened: list[str] = []
        self._sidecars = sidecars
        self._files = files
        self._rnd = random.Random(seed)

    async def play(self, events: int) -> None:
        """Let so many things happen, one after the other."""
        kinds: list[Callable[[], Awaitable[None]]] = [
            self._kill, self._kill, self._freeze, self._brokers, self._space, self._person
        ]  # fmt: skip
        await self.kafka.occupy(0, 0, FULL_BYTES)
        await seen(
            "a lowered quota",
            lambda: quotas_of(self.kafka),
            lambda quotas: is_rung(quotas[ETL][KEY]),
        )
        for _ in range(events):
            await asyncio.sleep(self._rnd.uniform(0.2, 6.0))
            kind = self._rnd.choice(kinds)
            self.happened.append(kind.__name__.strip("_"))
            await kind()

    async def end(self) -> None:
        """Let there be space."""
        await self.kafka.occupy(0, 0, 0)

    async def _kill(self) -> None:
        number = self._rnd.randrange(len(self._sidecars))
        await self._sidecars[number].end(signal.SIGKILL)
        if self._rnd.random() < 0.4:
            self._files[number].unlink(missing_ok=True)
        await asyncio.sleep(self._rnd.uniform(0.0, 4.0))
        await self._sidecars[number].start()

    async def _freeze(self) -> None:
        sidecar = self._rnd.choice(self._sidecars)
        sidecar.send(signal.SIGSTOP)
        await asyncio.sleep(self._rnd.uniform(1.0, 8.0))
        sidecar.send(signal.SIGCONT)

    async def _brokers(self) -> None:
        killed = self._rnd.choice([[0], [1], [0, 1]])
        for broker_id in killed:
            await self.kafka.kill_broker(broker_id)
        await asyncio.sleep(self._rnd.uniform(0.0, 5.0))
        for broker_id in killed:
            await self.kafka.start_broker(broker_id)

    async def _space(self) -> None:
        await self.kafka.occupy(0, 0, 0)
        await asyncio.sleep(self._rnd.uniform(1.0, 20.0))
        await self.kafka.occupy(0, 0, FULL_BYTES)

    async def _person(self) -> None:
        value = self._rnd.choice([2e6, 3e7])
        self.expected[ETL][KEY] = value
        alterations: list[Alteration] = [(ETL.parts(), {KEY: value})]
        assert await alter_client_quotas(admin_of(self.kafka), alterations) is None


@pytest.mark.parametrize("seed", SEEDS)
async def test_in_the_end_every_quota_is_as_it_was(
    kafka: Cluster, start: Start, tmp_path: Path, seed: int
) -> None:
    """Also those that the sidecar made by itself are gone."""
    limits = [(entity.parts(), dict(own)) for entity, own in BEFORE.items()]
    assert await alter_client_quotas(admin_of(kafka), limits) is None
    files = [tmp_path / f"state-{number}.json" for number in range(2)]
    sidecars = [
        await start(
            kafka,
            settings(
                kafka.bootstrap,
                ENFORCEMENT="client-quotas",
                STATE_FILE=str(file),
                THROTTLE_FACTOR_VALIDITY_DURATION=f"PT{VALIDITY_S}S",
            ),
        )
        for file in files
    ]
    scene = Scene(kafka, sidecars, files, seed)
    try:
        await scene.play(events=7)
        await scene.end()
        began = time.monotonic()
        await seen(
            f"the quotas as before, after {', '.join(scene.happened)}",
            lambda: quotas_of(kafka),
            lambda quotas: quotas == scene.expected,
            LONGEST_S,
        )
        print(f"seed {seed}: restored {time.monotonic() - began:.0f} s later: {scene.happened}")
    finally:
        for sidecar in sidecars:
            await sidecar.end()
        await remove_quotas(kafka)
