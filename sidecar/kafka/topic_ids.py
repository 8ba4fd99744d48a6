"""The names of topics that are given by their ids (Metadata, key 3, v12).

The request needs DESCRIBE on each topic. The answer grows with the partitions of these topics.

Example: ``await names_of(admin, 1, 2.0, ["-vv8_f7_AAAAAAAAAAAAAA"])`` is
``{"-vv8_f7_AAAAAAAAAAAAAA": "orders"}``.
"""

import base64
from collections.abc import Sequence
from typing import Final

from aiokafka.protocol.api import Response

from sidecar.kafka.client.each_broker import Query, query_each
from sidecar.kafka.client.messages import NO_ID, AdminRequest
from sidecar.kafka.producer_messages import MetadataRequestV12
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure

_UNKNOWN_TOPIC_ID: Final = 100


class TopicsById(AdminRequest, versions=(MetadataRequestV12,)):
    """Requests the metadata of topics by their ids."""

    NEEDED = "v12 (Kafka 3.1)"

    def __init__(self, ids: Sequence[bytes]) -> None:
        self.values = ([(topic_id, None, {}) for topic_id in ids], False, False)


async def names_of(
    admin: KafkaAdmin, broker_id: int, timeout_s: float, ids: Sequence[str]
) -> dict[str, str] | Failure:
    """Ask a broker for names.

    Args:
        admin: how to reach the brokers.
        broker_id: the broker to ask.
        timeout_s: the time for all requests, seconds.
        ids: the ids, as request logs write them.

    Returns:
        Id -> name; "" if there is no such topic. Ids that can't be described are left out.

    Raises:
        SettingsError: certificates or credentials can't be read.
    """
    asked = [found for topic_id in ids if (found := _bytes(topic_id)) is not None]
    query = Query(TopicsById(asked), "Describe")
    answers = await query_each(admin, [broker_id], lambda _: query, _names, timeout_s)
    return answers if isinstance(answers, Failure) else answers[broker_id]


def _bytes(topic_id: str) -> bytes | None:
    try:
        found = base64.urlsafe_b64decode(f"{topic_id}==")
    except ValueError:
        return None
    return found if len(found) == len(NO_ID) and found != NO_ID else None


def _names(_: Query, response: Response, _broker_id: int) -> dict[str, str] | Failure:
    return {
        # As Kafka's Uuid writes it.
        base64.urlsafe_b64encode(topic_id).decode().rstrip("="): name or ""
        for error_code, name, topic_id, *_ in response.topics or ()
        if (name if not error_code else error_code == _UNKNOWN_TOPIC_ID)
    }
