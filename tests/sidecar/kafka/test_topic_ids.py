"""The names of topics by their ids, by the answers of a fake broker."""

import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from sidecar.kafka.producer_messages import METADATA_KEY
from sidecar.kafka.topic_ids import names_of
from tests.sidecar.kafka.kio_codec import kio_answer
from tests.sidecar.kafka.servers import PATIENCE_S, admin, bootstrap
from tests.support.fake_broker import FakeCluster
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
        topics: list[dict[str, object]] = [
            {
                "error_code": error,
                "name": name,
                "topic_id": uuid.UUID(bytes=bytes([4 * (index + 1)]) + bytes(15)),
                "is_internal": False,
                "partitions": [],
                "topic_authorized_operations": 0,
            }
            for index, (error, name) in enumerate(ANSWERS)
        ]
        fields = {"brokers": [], "cluster_id": "any", "controller_id": 0, "topics": topics}
        return kio_answer(METADATA_KEY, 12, **fields)

    async with FakeCluster().add(2, volumes=1).answer(METADATA_KEY, 12, metadata) as cluster:
        nonsense = ["", "orders", "ä", "A" * 22, "B" * 40]
        reach = admin(bootstrap(cluster))
        found = await names_of(reach, 1, PATIENCE_S, [*IDS, *nonsense])
    assert {IDS[0]: "orders", IDS[1]: ""} == found
    assert [(None, each) for each in (4, 8, 12, 16)] == [
        (each.name, each.topic_id.bytes[0]) for each in asked
    ]
