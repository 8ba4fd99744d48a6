"""Each request's bytes against kio's, an independent codec made from Kafka's own definitions."""

from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_payload_module
from kio.static.constants import EntityType
from kio.static.primitive import f64, i8, i32

from sidecar.kafka.cluster_messages import (
    DescribeCluster,
    DescribeControllers,
    DescribeLogDirs,
)
from sidecar.kafka.config_messages import (
    BROKER,
    BROKER_LOGGER,
    DESCRIBE_CONFIGS_KEY,
    INCREMENTAL_ALTER_CONFIGS_KEY,
    DescribeConfigs,
    SetConfigs,
)
from sidecar.kafka.fed_brokers import MetadataOfTopics
from sidecar.kafka.producer_messages import (
    DESCRIBE_PRODUCERS_KEY,
    METADATA_KEY,
    AllTopics,
    DescribeProducers,
)
from sidecar.kafka.quota_messages import (
    ALTER_CLIENT_QUOTAS_KEY,
    AlterClientQuotas,
    DescribeClientQuotas,
)
from sidecar.kafka.topic_messages import (
    CREATE_PARTITIONS_KEY,
    CREATE_TOPICS_KEY,
    DELETE_TOPICS_KEY,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Growth,
    NewTopic,
)
from sidecar.kafka.user_messages import (
    DESCRIBE_USER_SCRAM_CREDENTIALS_KEY,
    DescribeAcls,
    DescribeUserScramCredentials,
)
from tests.sidecar.kafka.kio_codec import kio_request, our_request


def kio(key: int, version: int) -> Any:
    """The module of a request."""
    return load_payload_module(key, version, EntityType.request)


CONFIGS = kio(DESCRIBE_CONFIGS_KEY, 4)
SET_CONFIGS = kio(INCREMENTAL_ALTER_CONFIGS_KEY, 1)
CREATE = kio(CREATE_TOPICS_KEY, 7)
GROW = kio(CREATE_PARTITIONS_KEY, 3)
DELETE = kio(DELETE_TOPICS_KEY, 6)
QUOTAS = kio(ALTER_CLIENT_QUOTAS_KEY, 1)
SCRAM = kio(DESCRIBE_USER_SCRAM_CREDENTIALS_KEY, 0)
METADATA = kio(METADATA_KEY, 12)
PRODUCERS = kio(DESCRIBE_PRODUCERS_KEY, 0)

NO_RIGHTS: dict[str, object] = {"include_cluster_authorized_operations": False}
NO_TOPIC_MADE: dict[str, object] = {
    "allow_auto_topic_creation": False,
    "include_topic_authorized_operations": False,
}
TEN_SECONDS = timedelta(seconds=10)
EVERY_ACL: dict[str, object] = dict.fromkeys(
    ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), i8(1)
) | dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter"))

ANN = QUOTAS.EntityData(entity_type="user", entity_name="ann")
ANY_CLIENT = QUOTAS.EntityData(entity_type="client-id", entity_name=None)
ETL = QUOTAS.EntityData(entity_type="client-id", entity_name="etl")
RETENTION = CREATE.CreatableTopicConfig(name="retention.ms", value="1000")

REQUESTS: dict[str, tuple[Any, int, dict[str, object]]] = {
    "brokers, v0": (DescribeCluster(), 0, NO_RIGHTS),
    "brokers, v1": (DescribeCluster(), 1, NO_RIGHTS),
    "brokers, v2, with the fenced ones": (
        DescribeCluster(),
        2,
        {**NO_RIGHTS, "include_fenced_brokers": True},
    ),
    "controllers": (DescribeControllers(), 1, {**NO_RIGHTS, "endpoint_type": 2}),
    # An empty array of topics asks for the volumes only; a null one would ask for every topic.
    "volumes, v4": (DescribeLogDirs(), 4, {"topics": ()}),
    "volumes, v5": (DescribeLogDirs(), 5, {"topics": ()}),
    "two configurations of a broker": (
        DescribeConfigs(BROKER, "3", ("num.io.threads", "num.network.threads")),
        4,
        {
            "resources": (
                CONFIGS.DescribeConfigsResource(
                    resource_type=4,
                    resource_name="3",
                    configuration_keys=("num.io.threads", "num.network.threads"),
                ),
            ),
            "include_synonyms": False,
            "include_documentation": False,
        },
    ),
    "levels of two loggers": (
        SetConfigs(BROKER_LOGGER, "3", {"kafka.request.logger": "DEBUG", "root": "WARN"}),
        1,
        {
            "resources": (
                SET_CONFIGS.AlterConfigsResource(
                    resource_type=8,
                    resource_name="3",
                    configs=tuple(
                        # Operation 0 is SET.
                        SET_CONFIGS.AlterableConfig(name=name, config_operation=0, value=level)
                        for name, level in (("kafka.request.logger", "DEBUG"), ("root", "WARN"))
                    ),
                ),
            ),
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
            "topics": tuple(
                CREATE.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=replicas,
                    assignments=(),
                    configs=configs,
                )
                for name, partitions, replicas, configs in (
                    ("a", 4, 3, (RETENTION,)),
                    ("b", -1, -1, ()),
                )
            ),
            "timeout": TEN_SECONDS,
            "validate_only": True,
        },
    ),
    # Null assignments let the brokers choose.
    "more partitions": (
        CreatePartitions([Growth("a", 8)], 10_000),
        3,
        {
            "topics": (GROW.CreatePartitionsTopic(name="a", count=8, assignments=None),),
            "timeout": TEN_SECONDS,
            "validate_only": False,
        },
    ),
    "topics to delete": (
        DeleteTopics(["a", "b"], 10_000),
        6,
        {
            "topics": tuple(DELETE.DeleteTopicState(name=name, topic_id=None) for name in "ab"),
            "timeout": TEN_SECONDS,
        },
    ),
    "every quota": (DescribeClientQuotas(), 1, {"components": (), "strict": False}),
    "a quota to set and one to remove": (
        AlterClientQuotas(
            [
                ({"user": "ann", "client-id": None}, {"producer_byte_rate": 1.5e6}),
                ({"client-id": "etl"}, {"request_percentage": None}),
            ]
        ),
        1,
        {
            "entries": tuple(
                QUOTAS.EntryData(
                    entity=entity,
                    ops=(QUOTAS.OpData(key=key, value=f64(value), remove=value == 0.0),),
                )
                for entity, key, value in (
                    ((ANN, ANY_CLIENT), "producer_byte_rate", 1.5e6),
                    ((ETL,), "request_percentage", 0.0),
                )
            ),
            "validate_only": False,
        },
    ),
    "every user with SCRAM": (DescribeUserScramCredentials(), 0, {"users": None}),
    "one user with SCRAM": (
        DescribeUserScramCredentials("ann"),
        0,
        {"users": (SCRAM.UserName(name="ann"),)},
    ),
    "every ACL, v2": (DescribeAcls(), 2, EVERY_ACL),
    "every ACL, v3": (DescribeAcls(), 3, EVERY_ACL),
    "every topic": (AllTopics(), 12, {"topics": None, **NO_TOPIC_MADE}),
    "topics by name": (
        MetadataOfTopics(["a", "b"]),
        12,
        {
            "topics": tuple(
                METADATA.MetadataRequestTopic(topic_id=None, name=name) for name in ("a", "b")
            ),
            **NO_TOPIC_MADE,
        },
    ),
    "producers of three partitions": (
        DescribeProducers({"orders": [0, 7], "clicks": [1]}),
        0,
        {
            "topics": (
                PRODUCERS.TopicRequest(name="orders", partition_indexes=(i32(0), i32(7))),
                PRODUCERS.TopicRequest(name="clicks", partition_indexes=(i32(1),)),
            )
        },
    ),
}


@pytest.mark.parametrize(("request_", "version", "fields"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_has_kafkas_bytes(request_: Any, version: int, fields: dict[str, object]) -> None:
    """The bytes are those that kio writes for the same fields."""
    assert kio_request(request_.API_KEY, version, **fields) == our_request(request_, version)
