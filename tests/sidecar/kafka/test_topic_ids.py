"""The names of topics by their ids, by the answers of a fake broker."""

import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from sidecar.kafka.producer_messages import METADATA_KEY
from sidecar.kafka.topic_ids import names_of
from tests.sidecar.kafka.servers import PATIENCE_S, admin, bootstrap
from tests.support.fake_broker import FakeCluster
from tests.support.fake_topics import metadata_answer, metadata_topic
from tests.support.virtual_time import VIRTUAL_TIME

pytestmark = [VIRTUAL_TIME, pytest.mark.usefixtures("nothing_left_open")]

IDS = [f"{letter}AAAAAAAAAAAAAAAAAAAAA" for letter in "BCDE"]
"""As Kafka's Uuid writes them."""
ANSWERS: list[tuple[ErrorCode, str | None]] = [
    (ErrorCode.none, "orders"),
    (ErrorCode.unknown_topic_id, None),
    (ErrorCode.topic_authorization_failed, None),
    (ErrorCode.leader_not_available, "clicks"),
]


async def test_each_id_has_its_topics_name() -> None:
    """A deleted topic has none, and one that can't be described is left out, as is nonsense."""
    asked: list[Any] = []

    def metadata(_: object, request: Any) -> bytes:
        asked.extend(request.decoded.topics)
        ids = (uuid.UUID(bytes=bytes([first]) + bytes(15)) for first in (4, 8, 12, 16))
        topics = (
            metadata_topic(name, error=error, topic_id=topic_id)
            for topic_id, (error, name) in zip(ids, ANSWERS, strict=True)
        )
        return metadata_answer(*topics)

    async with FakeCluster().add(2, volumes=1).answer(METADATA_KEY, 12, metadata) as cluster:
        nonsense = ["", "orders", "ä", "A" * 22, "B" * 40]
        reach = admin(bootstrap(cluster))
        found = await names_of(reach, 1, PATIENCE_S, [*IDS, *nonsense])
    assert {IDS[0]: "orders", IDS[1]: ""} == found
    assert [(None, each) for each in (4, 8, 12, 16)] == [
        (each.name, each.topic_id.bytes[0]) for each in asked
    ]
