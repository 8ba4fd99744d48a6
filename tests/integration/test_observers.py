"""Of several sidecars on a real cluster some ask all brokers, and the others follow those."""

import asyncio
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kafka_lab.cluster import Cluster
from kafka_lab.ports import Ports
from tests.support.daemon import FULL_BYTES, Daemon, Start, all_decide, settings
from tests.support.waiting import seen

SIDECARS = 6
OBSERVERS = 2


@pytest_asyncio.fixture
async def daemons(kafka: Cluster, start: Start) -> AsyncIterator[list[Daemon]]:
    """Sidecars that know one another, two of which are to ask the brokers."""
    with Ports() as ports:
        listens = [f"127.0.0.1:{ports.reserve()}" for _ in range(SIDECARS)]
        more = {
            "PEERS": ",".join(f"http://{each}" for each in listens),
            "OBSERVERS": str(OBSERVERS),
            "PRODUCER_IDS_RATE": "1000000",
            # Slower than usual here, so that an observer's death is seen between two renewals.
            "STORAGE_CHECK_INTERVAL": "PT2S",
            "STORAGE_CHECK_INTERVAL_MINIMUM": "PT1S",
        }
        yield list(
            await asyncio.gather(
                *(
                    start(kafka, settings(kafka.bootstrap, HTTP_LISTEN=each, **more))
                    for each in listens
                )
            )
        )


async def observing(daemons: list[Daemon]) -> list[Daemon]:
    """Those that ask the brokers themselves."""
    scrapes = await asyncio.gather(*(each.metrics() for each in daemons))
    return [
        daemon
        for daemon, metrics in zip(daemons, scrapes, strict=True)
        if metrics.value("observer") == 1.0
    ]


async def scanning(daemons: list[Daemon]) -> list[Daemon]:
    """Those that ask all brokers which producer ids write."""
    answers = await asyncio.gather(*(each.get("/v1/producer-ids") for each in daemons))
    return [
        daemon
        for daemon, answer in zip(daemons, answers, strict=True)
        if answer["active"]["is_scanning"]
    ]


@pytest.mark.slow
async def test_two_of_six_ask_the_brokers(kafka: Cluster, daemons: list[Daemon]) -> None:
    """All see a full volume, also when one of the two has been killed; the next takes its place."""
    await all_decide(daemons, 1.0)
    await seen("two observers", lambda: observing(daemons), lambda found: len(found) == OBSERVERS)
    found = await observing(daemons)
    await seen("the same two scan", lambda: scanning(daemons), lambda scan: scan == found)
    await kafka.occupy(1, 0, FULL_BYTES)
    await all_decide(daemons, 0.0)
    for daemon in daemons:
        assert (1, str(kafka.brokers[1].volumes[0].path)) in await daemon.volumes()
    first = (await observing(daemons))[0]
    first.send(signal.SIGKILL)
    left = [each for each in daemons if each is not first]
    await kafka.occupy(1, 0, 0)
    await all_decide(left, 1.0)
    await seen("two observers", lambda: observing(left), lambda found: len(found) == OBSERVERS)
    await kafka.occupy(0, 1, FULL_BYTES)
    await all_decide(left, 0.0)
    await first.end()
