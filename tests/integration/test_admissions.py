"""Admissions of a real daemon and of a real controller: by the same quotas, the same answers."""

import asyncio
from typing import Any

import httpx

from kafka_lab.cluster import Cluster
from sidecar.kafka.topic_changes import create_topics
from sidecar.kafka.topic_messages import NewTopic
from sidecar.kafka.topic_results import Outcome
from sidecar.quotas.entities import Entity
from tests.support.client_quotas import admin_of, under
from tests.support.daemon import Daemon, Start, settings

PATH = "/v1/admissions/controller-mutations"
PARTITIONS = [7, 20, 9, 1, 30, 2]
"""At 3 a second, a bucket of 33: the third one takes 3 more than is left, and then it is 1 s."""


async def ask(
    daemon: Daemon, operations: list[dict[str, object]], user: str, client_id: str
) -> httpx.Response:
    """What a portal does; the user of the plain listener is ANONYMOUS."""
    body = {"user": user, "client_id": client_id, "operations": operations}
    return await daemon.ask(PATH, "POST", body=body)


def operations() -> list[dict[str, object]]:
    return [
        {"kind": "create_topic", "topic": f"t{number}", "partitions": partitions}
        for number, partitions in enumerate(PARTITIONS)
    ]


async def test_the_daemon_answers_as_the_controller_does(node: Cluster, start: Start) -> None:
    """Both admit the same topics with the same wait; another client is admitted on its own."""
    admin = admin_of(node, "portal")
    rate = {Entity(client_id="portal"): {"controller_mutation_rate": 3.0}}
    async with under(node, rate):
        daemon = await start(node, settings(node.bootstrap))
        ours = await ask(daemon, operations(), "ANONYMOUS", "portal")
        assert 200 == ours.status_code, ours.text
        theirs = await create_topics(
            admin,
            [NewTopic(f"t{number}", partitions, 1) for number, partitions in enumerate(PARTITIONS)],
            retry_on_quota_violation=False,
        )
        document: dict[str, Any] = ours.json()
        admitted = [result.outcome is Outcome.DONE for result in theirs]
        assert [True, True, True, False, False, False] == admitted
        assert admitted == [result["accepted"] for result in document["results"]]
        # The bucket is a little fuller by the time of the rejected ones; the rest is the network's.
        assert 1000 == document["throttle_time_ms"]
        assert 0 < theirs[-1].throttle_time_ms <= 1000

        early = await ask(daemon, operations()[3:4], "ANONYMOUS", "portal")
        assert (429, "1") == (early.status_code, early.headers["retry-after"])
        other = await ask(daemon, operations(), "ANONYMOUS", "etl")
        assert 0 == other.json()["throttle_time_ms"]
        await asyncio.sleep(1.0)
        late = await ask(daemon, operations()[3:4], "ANONYMOUS", "portal")
        assert late.json()["results"][0]["accepted"]
