"""The requests for configurations against kio's, made from Kafka's own definitions.

The answers are compared in test_cluster_messages.py.
"""

from kio.index import load_payload_module
from kio.static.constants import EntityType

from sidecar.kafka.cluster_messages import DESCRIBE_CLUSTER_KEY, DescribeControllers
from sidecar.kafka.config_messages import (
    BROKER,
    BROKER_LOGGER,
    DESCRIBE_CONFIGS_KEY,
    INCREMENTAL_ALTER_CONFIGS_KEY,
    DescribeConfigs,
    SetConfigs,
)
from tests.sidecar.kafka.kio_codec import kio_request, our_request


def test_describe_configs_requests_are_kafkas_bytes() -> None:
    """They ask for two configurations of one broker, without synonyms and documentation."""
    kio = load_payload_module(DESCRIBE_CONFIGS_KEY, 4, EntityType.request)
    names = ("num.io.threads", "num.network.threads")
    resource = kio.DescribeConfigsResource(
        resource_type=4, resource_name="3", configuration_keys=names
    )
    expected = kio_request(
        DESCRIBE_CONFIGS_KEY,
        4,
        resources=(resource,),
        include_synonyms=False,
        include_documentation=False,
    )
    assert expected == our_request(DescribeConfigs(BROKER, "3", names), 4)


def test_set_configs_requests_are_kafkas_bytes() -> None:
    """They have operation 0, SET, on two loggers of a broker."""
    kio = load_payload_module(INCREMENTAL_ALTER_CONFIGS_KEY, 1, EntityType.request)
    configs = tuple(
        kio.AlterableConfig(name=name, config_operation=0, value=level)
        for name, level in (("kafka.request.logger", "DEBUG"), ("root", "WARN"))
    )
    resource = kio.AlterConfigsResource(resource_type=8, resource_name="3", configs=configs)
    expected = kio_request(
        INCREMENTAL_ALTER_CONFIGS_KEY, 1, resources=(resource,), validate_only=False
    )
    levels = {"kafka.request.logger": "DEBUG", "root": "WARN"}
    assert expected == our_request(SetConfigs(BROKER_LOGGER, "3", levels), 1)


def test_describe_controllers_requests_are_kafkas_bytes() -> None:
    """DescribeCluster v1 asks for controllers, 2."""
    expected = kio_request(
        DESCRIBE_CLUSTER_KEY, 1, include_cluster_authorized_operations=False, endpoint_type=2
    )
    assert expected == our_request(DescribeControllers(), 1)
