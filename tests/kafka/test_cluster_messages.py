"""Our messages against kio's, an independent codec made from Kafka's own definitions."""

import dataclasses
import io
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest
from aiokafka.protocol.api import Response
from aiokafka.protocol.struct import Struct
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_payload_module
from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32

from sidecar.kafka.cluster_messages import (
    DESCRIBE_CLUSTER_KEY,
    DESCRIBE_LOG_DIRS_KEY,
    DescribeCluster,
    DescribeClusterResponseV0,
    DescribeClusterResponseV1,
    DescribeClusterResponseV2,
    DescribeLogDirs,
    DescribeLogDirsResponseV4,
    DescribeLogDirsResponseV5,
)
from sidecar.kafka.config_messages import (
    DESCRIBE_CONFIGS_KEY,
    INCREMENTAL_ALTER_CONFIGS_KEY,
    DescribeConfigsResponseV4,
    IncrementalAlterConfigsResponseV1,
)
from sidecar.kafka.producer_messages import DESCRIBE_PRODUCERS_KEY, METADATA_KEY
from sidecar.kafka.quota_messages import (
    ALTER_CLIENT_QUOTAS_KEY,
    DESCRIBE_CLIENT_QUOTAS_KEY,
    AlterClientQuotasResponseV1,
    DescribeClientQuotasResponseV1,
)
from sidecar.kafka.user_messages import (
    DESCRIBE_ACLS_KEY,
    DESCRIBE_USER_SCRAM_CREDENTIALS_KEY,
    DescribeAclsResponseV2,
    DescribeAclsResponseV3,
    DescribeUserScramCredentialsResponseV0,
)
from tests.support.examples import DEAR
from tests.support.fake_broker import encode

RESPONSES = [
    DescribeClusterResponseV0,
    DescribeClusterResponseV1,
    DescribeClusterResponseV2,
    DescribeLogDirsResponseV4,
    DescribeLogDirsResponseV5,
    AlterClientQuotasResponseV1,
    DescribeClientQuotasResponseV1,
    DescribeUserScramCredentialsResponseV0,
    DescribeAclsResponseV2,
    DescribeAclsResponseV3,
    DescribeConfigsResponseV4,
    IncrementalAlterConfigsResponseV1,
]
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
    return entity.value if isinstance(entity, Enum) else entity


def our_values(value: Any) -> Any:
    """The fields of a decoded message of ours, in order, without the tags."""
    if isinstance(value, Struct):
        value = [getattr(value, name) for name in value.SCHEMA.names]
    if isinstance(value, list | tuple):
        return [our_values(each) for each in value if not isinstance(each, dict)]
    return value


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


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        (0, {"include_cluster_authorized_operations": False}),
        (1, {"include_cluster_authorized_operations": False}),
        (2, {"include_cluster_authorized_operations": False, "include_fenced_brokers": True}),
    ],
)
def test_describe_cluster_requests_are_kafkas_bytes(
    version: int, fields: dict[str, object]
) -> None:
    """Each version asks for brokers, from v2 on for the fenced ones too, in kio's very bytes."""
    expected = kio_request(DESCRIBE_CLUSTER_KEY, version, **fields)
    assert expected == our_request(DescribeCluster(), version)


@pytest.mark.parametrize("version", [4, 5])
def test_describe_log_dirs_requests_are_kafkas_bytes(version: int) -> None:
    """Each version asks for volumes only: an empty array of topics, which is not a null one."""
    expected = kio_request(DESCRIBE_LOG_DIRS_KEY, version, topics=())
    assert expected == our_request(DescribeLogDirs(), version)
    assert kio_request(DESCRIBE_LOG_DIRS_KEY, version, topics=None) != expected


@pytest.mark.parametrize("response", RESPONSES)
@DEAR
@given(data=st.data())
def test_every_response_is_kafkas_bytes(response: type[Response], data: Any) -> None:
    """Whatever a broker may answer has the same values here, and is the same bytes again."""
    of_kio = kio_type(response.API_KEY, response.API_VERSION, EntityType.response)
    entity = data.draw(st.from_type(of_kio))
    written = encode(entity)
    decoded = response.decode(written)
    assert kio_values(entity) == our_values(decoded)
    assert written == decoded.encode()
    assert (entity, len(written)) == entity_reader(of_kio)(decoded.encode(), 0)


def test_tags_that_a_newer_broker_adds_are_skipped() -> None:
    """An unknown tagged field, in a log dir and at the end, changes nothing that is read."""
    plain = DescribeLogDirsResponseV4(0, 0, [(0, "/data", [], 100, 25, {})], {}).encode()
    # Each list of tags is one byte, 00, here the last two: one tag, number 9, of two bytes.
    tagged = plain[:-2] + b"\x01\x09\x02ab" + b"\x01\x09\x02cd"
    decoded = DescribeLogDirsResponseV4.decode(tagged)
    expected: list[object] = [(0, "/data", [], 100, 25, {9: b"ab"})]
    assert expected == decoded.results


@pytest.mark.parametrize(
    ("request_", "known", "expected"),
    [
        (DescribeCluster(), (0, 0), 0),
        (DescribeCluster(), (0, 1), 1),
        (DescribeCluster(), (0, 2), 2),
        (DescribeCluster(), (0, 9), 2),
        (DescribeLogDirs(), (1, 4), 4),
        (DescribeLogDirs(), (1, 5), 5),
        (DescribeLogDirs(), (1, 9), 5),
    ],
)
def test_the_newest_version_that_both_know_is_used(
    request_: DescribeCluster | DescribeLogDirs, known: tuple[int, int], expected: int
) -> None:
    """Negotiated as measured: 3.3.2 gives v4 and v0, 3.9.1 v4 and v1, 4.3.1 v5 and v2."""
    assert expected == request_.prepare({request_.API_KEY: known}).API_VERSION


def test_a_broker_without_sizes_is_refused() -> None:
    """Before v4 DescribeLogDirs has no sizes, and no such version is ever sent."""
    with pytest.raises(NotImplementedError):
        DescribeLogDirs().prepare({DESCRIBE_LOG_DIRS_KEY: (1, 3)})
