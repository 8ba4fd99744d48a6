"""kio, an independent codec made from Kafka's own definitions, beside ours."""

import dataclasses
import io
from datetime import timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from kio.index import load_payload_module
from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32

from sidecar.kafka.cluster_messages import (
    DESCRIBE_CLUSTER_KEY,
    DESCRIBE_LOG_DIRS_KEY,
)
from sidecar.kafka.config_messages import (
    DESCRIBE_CONFIGS_KEY,
    INCREMENTAL_ALTER_CONFIGS_KEY,
)
from sidecar.kafka.producer_messages import DESCRIBE_PRODUCERS_KEY, METADATA_KEY
from sidecar.kafka.quota_messages import (
    ALTER_CLIENT_QUOTAS_KEY,
    DESCRIBE_CLIENT_QUOTAS_KEY,
)
from sidecar.kafka.topic_messages import (
    CREATE_PARTITIONS_KEY,
    CREATE_TOPICS_KEY,
    DELETE_TOPICS_KEY,
)
from sidecar.kafka.user_messages import (
    DESCRIBE_ACLS_KEY,
    DESCRIBE_USER_SCRAM_CREDENTIALS_KEY,
)
from tests.support.fake_broker import encode

NAMES = {
    DESCRIBE_CLUSTER_KEY: "DescribeCluster",
    DESCRIBE_LOG_DIRS_KEY: "DescribeLogDirs",
    ALTER_CLIENT_QUOTAS_KEY: "AlterClientQuotas",
    DESCRIBE_CLIENT_QUOTAS_KEY: "DescribeClientQuotas",
    DESCRIBE_CONFIGS_KEY: "DescribeConfigs",
    INCREMENTAL_ALTER_CONFIGS_KEY: "IncrementalAlterConfigs",
    DESCRIBE_USER_SCRAM_CREDENTIALS_KEY: "DescribeUserScramCredentials",
    DESCRIBE_ACLS_KEY: "DescribeAcls",
    DESCRIBE_PRODUCERS_KEY: "DescribeProducers",
    METADATA_KEY: "Metadata",
    CREATE_TOPICS_KEY: "CreateTopics",
    CREATE_PARTITIONS_KEY: "CreatePartitions",
    DELETE_TOPICS_KEY: "DeleteTopics",
}


def kio_type(key: int, version: int, kind: Any) -> Any:
    name = NAMES[key] + ("Request" if kind is EntityType.request else "Response")
    return getattr(load_payload_module(key, version, kind), name)


def kio_values(entity: Any) -> Any:
    """The fields of an entity of kio's, in order, as plain values."""
    if dataclasses.is_dataclass(entity):
        return [kio_values(getattr(entity, each.name)) for each in dataclasses.fields(entity)]
    if isinstance(entity, tuple):
        return [kio_values(each) for each in entity]
    if isinstance(entity, timedelta):
        return round(entity / timedelta(milliseconds=1))
    if isinstance(entity, UUID):
        return entity.bytes
    return entity.value if isinstance(entity, Enum) else entity


def our_request(request: Any, version: int) -> bytes:
    """The bytes that a connection sends, after the frame's length."""
    struct = request.prepare({request.API_KEY: (0, version)})
    header = struct.build_request_header(correlation_id=7, client_id="throttle-sidecar")
    sent: bytes = header.encode() + struct.encode()
    return sent


def kio_request(key: int, version: int, **fields: object) -> bytes:
    """The same by kio."""
    buffer = io.BytesIO()
    header = RequestHeader(
        request_api_key=i16(key),
        request_api_version=i16(version),
        correlation_id=i32(7),
        client_id="throttle-sidecar",
    )
    entity_writer(RequestHeader)(buffer, header)
    return buffer.getvalue() + encode(kio_type(key, version, EntityType.request)(**fields))
