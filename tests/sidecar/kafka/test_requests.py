"""Each request's bytes against kio's, an independent codec made from Kafka's own definitions."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.static.constants import EntityType

from sidecar.kafka.cluster_messages import (
    DescribeCluster,
    DescribeClusterId,
    DescribeControllers,
    DescribeLogDirs,
)
from sidecar.kafka.config_messages import (
    BROKER,
    BROKER_LOGGER,
    TOPIC,
    DescribeConfigs,
    SetConfigs,
)
from sidecar.kafka.fed_brokers import MetadataOfTopics
from sidecar.kafka.log_dir_messages import DescribeSomeTopics
from sidecar.kafka.producer_messages import (
    AllTopics,
    DescribeProducers,
)
from sidecar.kafka.quota_messages import (
    AlterClientQuotas,
    DescribeClientQuotas,
)
from sidecar.kafka.relief_messages import (
    LATEST,
    DeleteRecords,
    DescribeShareOffsets,
    FetchOffsets,
    ListGroups,
    ListOffsets,
)
from sidecar.kafka.topic_ids import TopicsById
from sidecar.kafka.topic_messages import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Growth,
    NewTopic,
)
from sidecar.kafka.user_messages import (
    DescribeAcls,
    DescribeUserScramCredentials,
)
from tests.sidecar.kafka.kio_codec import kio_request, our_request
from tests.support.fake_broker import kio_type

NO_RIGHTS: dict[str, object] = {"include_cluster_authorized_operations": False}
NO_TOPIC_MADE: dict[str, object] = {
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}
TEN_SECONDS = timedelta(seconds=10)
EVERY_ACL: dict[str, object] = dict.fromkeys(
    ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), 1
) | dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))
THREADS = ("num.io.threads", "num.network.threads")
SET = 0
"""The operation of a configuration that is altered."""

REQUESTS: dict[str, tuple[Any, int, dict[str, object]]] = {
    "brokers, v0": (DescribeCluster(), 0, NO_RIGHTS),
    "the cluster's id": (DescribeClusterId(), 0, NO_RIGHTS),
    "brokers, v1": (DescribeCluster(), 1, NO_RIGHTS),
    "brokers, v2, with the fenced ones": (
        DescribeCluster(),
        2,
        {**NO_RIGHTS, "include_fenced_brokers": True},
    ),
    "controllers": (DescribeControllers(), 1, {**NO_RIGHTS, "endpoint_type": 2}),
    # An empty array of topics asks for the volumes only; a null one would ask for every topic.
    "volumes, v4": (DescribeLogDirs(), 4, {"topics": []}),
    "volumes, v5": (DescribeLogDirs(), 5, {"topics": []}),
    "two configurations of a broker": (
        DescribeConfigs(BROKER, ["3"], THREADS),
        4,
        {
            "resources": [
                {"resource_type": 4, "resource_name": "3", "configuration_keys": THREADS},
            ],
            "include_synonyms": False,
            "include_documentation": False,
        },
    ),
    "levels of two loggers": (
        SetConfigs(BROKER_LOGGER, "3", {"kafka.request.logger": "DEBUG", "root": "WARN"}),
        1,
        {
            "resources": [
                {
                    "resource_type": 8,
                    "resource_name": "3",
                    "configs": [
                        {"name": "kafka.request.logger", "config_operation": SET, "value": "DEBUG"},
                        {"name": "root", "config_operation": SET, "value": "WARN"},
                    ],
                }
            ],
            "validate_only": False,
        },
    ),
    "new topics, validated only": (
        CreateTopics(
            [NewTopic("a", 4, 3, {"retention.ms": "1000"}), NewTopic("b")],
            10_000,
            validate_only=True,
        ),
        7,
        {
            "topics": [
                {
                    "name": "a",
                    "num_partitions": 4,
                    "replication_factor": 3,
                    "assignments": [],
                    "configs": [{"name": "retention.ms", "value": "1000"}],
                },
                {
                    "name": "b",
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": [],
                    "configs": [],
                },
            ],
            "timeout": TEN_SECONDS,
            "validate_only": True,
        },
    ),
    # Null assignments let the brokers choose.
    "more partitions": (
        CreatePartitions([Growth("a", 8)], 10_000),
        3,
        {
            "topics": [{"name": "a", "count": 8, "assignments": None}],
            "timeout": TEN_SECONDS,
            "validate_only": False,
        },
    ),
    "topics to delete": (
        DeleteTopics(["a", "b"], 10_000),
        6,
        {
            "topics": [{"name": "a", "topic_id": None}, {"name": "b", "topic_id": None}],
            "timeout": TEN_SECONDS,
        },
    ),
    "every quota": (DescribeClientQuotas(), 1, {"components": [], "strict": False}),
    "a quota to set and one to remove": (
        AlterClientQuotas(
            [
                ({"user": "ann", "client-id": None}, {"producer_byte_rate": 1.5e6}),
                ({"client-id": "etl"}, {"request_percentage": None}),
            ]
        ),
        1,
        {
            "entries": [
                {
                    "entity": [
                        {"entity_type": "user", "entity_name": "ann"},
                        {"entity_type": "client-id", "entity_name": None},
                    ],
                    "ops": [{"key": "producer_byte_rate", "value": 1.5e6, "remove": False}],
                },
                {
                    "entity": [{"entity_type": "client-id", "entity_name": "etl"}],
                    "ops": [{"key": "request_percentage", "value": 0.0, "remove": True}],
                },
            ],
            "validate_only": False,
        },
    ),
    "every user with SCRAM": (DescribeUserScramCredentials(), 0, {"users": None}),
    "one user with SCRAM": (
        DescribeUserScramCredentials("ann"),
        0,
        {"users": [{"name": "ann"}]},
    ),
    "every ACL, v2": (DescribeAcls(), 2, EVERY_ACL),
    "every ACL, v3": (DescribeAcls(), 3, EVERY_ACL),
    "every topic": (AllTopics(), 12, {"topics": None, **NO_TOPIC_MADE}),
    "topics by name": (
        MetadataOfTopics(["a", "b"]),
        12,
        {
            "topics": [{"topic_id": None, "name": "a"}, {"topic_id": None, "name": "b"}],
            **NO_TOPIC_MADE,
        },
    ),
    "metadata of a topic by its id": (
        TopicsById([bytes(range(16))]),
        12,
        {"topics": [{"topic_id": UUID(bytes=bytes(range(16))), "name": None}], **NO_TOPIC_MADE},
    ),
    "producers of three partitions": (
        DescribeProducers({"orders": [0, 7], "clicks": [1]}),
        0,
        {
            "topics": [
                {"name": "orders", "partition_indexes": (0, 7)},
                {"name": "clicks", "partition_indexes": (1,)},
            ]
        },
    ),
    "records below two offsets": (
        DeleteRecords({("logs", 0): 120, ("logs", 1): 7}, 10_000),
        2,
        {
            "topics": [
                {
                    "name": "logs",
                    "partitions": [
                        {"partition_index": 0, "offset": 120},
                        {"partition_index": 1, "offset": 7},
                    ],
                }
            ],
            "timeout": TEN_SECONDS,
        },
    ),
    "the end of a partition": (
        ListOffsets({("logs", 3): (5, LATEST)}),
        7,
        {
            "replica_id": -1,
            "isolation_level": 0,
            "topics": [
                {
                    "name": "logs",
                    "partitions": [
                        {"partition_index": 3, "current_leader_epoch": 5, "timestamp": -1}
                    ],
                }
            ],
        },
    ),
    "groups, v4": (ListGroups(), 4, {"states_filter": ()}),
    "groups, v5": (ListGroups(), 5, {"states_filter": (), "types_filter": ()}),
    "all offsets of two groups": (
        FetchOffsets(["a", "b"]),
        8,
        {
            "groups": [{"group_id": "a", "topics": None}, {"group_id": "b", "topics": None}],
            "require_stable": False,
        },
    ),
    "all offsets of a share group": (
        DescribeShareOffsets(["a"]),
        0,
        {"groups": [{"group_id": "a", "topics": None}]},
    ),
    "a configuration of two topics": (
        DescribeConfigs(TOPIC, ["a", "b"], ["segment.bytes"]),
        4,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": name,
                    "configuration_keys": ("segment.bytes",),
                }
                for name in "ab"
            ],
            "include_synonyms": False,
            "include_documentation": False,
        },
    ),
    "sizes of two partitions": (
        DescribeSomeTopics({"a": [0, 2]}),
        5,
        {"topics": [{"topic": "a", "partitions": (0, 2)}]},
    ),
}


@pytest.mark.parametrize(("request_", "version", "fields"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_has_kafkas_bytes(request_: Any, version: int, fields: dict[str, object]) -> None:
    """The bytes are those that kio writes for the same fields."""
    assert kio_request(request_.API_KEY, version, **fields) == our_request(request_, version)


@pytest.mark.parametrize(("request_", "version", "fields"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_has_kafkas_name(request_: Any, version: int, fields: dict[str, object]) -> None:
    """Failures say it; an operator finds nothing about the name of a class of ours."""
    del fields
    of_kio = kio_type(request_.API_KEY, version, EntityType.request).__name__
    assert f"{request_.NAME}Request" == of_kio
