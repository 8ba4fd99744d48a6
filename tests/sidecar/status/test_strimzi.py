"""Remedies by platform: Strimzi's resources, or Kafka's own tools, and which was assumed."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from sidecar.kafka.largest_topics import TopicSize
from sidecar.settings import HostPort, KafkaAdmin, Settings
from sidecar.settings.values import Platform
from sidecar.status.inputs import ToolSettings
from sidecar.status.relief import commands
from sidecar.status.strimzi import Pod, growth, namespace_of, pod_of, size_patch
from sidecar.status.target import Target
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.rules import Rules
from sidecar.volumes import Membership, Volume
from tests.sidecar.throttle.build import reading, remembering, whole

GIB = 1 << 30
ORDERS = TopicSize("Orders_v1", 60, (3, 0), 40)
BROKER_2 = "prod-hot-2.prod-kafka-brokers.kafka.svc:9093"
KAFKA, STRIMZI = "These commands are for Kafka alone", "These commands are for Strimzi"


def target(
    address: str, platform: Platform = "auto", bootstrap: tuple[str, ...] = (), security: str = ""
) -> Target:
    """The target in a cluster whose broker 2 has this address."""
    tools = ToolSettings(platform, bootstrap, tuple(security.split()))
    return Target.of(Memory(Membership("A", {2: address})), tools)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (BROKER_2, Pod("prod-hot-2", "hot", "kafka")),
        ("a-b-c-d-2.a-b-kafka-brokers.n.svc.cluster.local:9092", Pod("a-b-c-d-2", "c-d", "n")),
        (
            "my-cluster-kafka-2.my-cluster-kafka-brokers.ns.svc:9091",
            Pod("my-cluster-kafka-2", "kafka", "ns"),
        ),
        ("prod-hot-1.prod-kafka-brokers.kafka.svc:9093", None),
        ("prod-hot-2.test-kafka-brokers.kafka.svc:9093", None),
        ("kafka-2.kafka-headless.kafka.svc:9093", None),
        ("prod-hot-2.prod-kafka-brokers.example.org:9093", None),
        ("kafka-2.kafka:9092", None),
        ("192.0.2.7:9092", None),
    ],
)
def test_a_brokers_pod(address: str, expected: Pod | None) -> None:
    """It is known by Strimzi's form alone, with the broker's own id and one cluster's name."""
    assert expected == pod_of(2, address)


@pytest.mark.parametrize(
    ("address", "platform", "bootstrap", "namespace", "says"),
    [
        (BROKER_2, "auto", (), "kafka", STRIMZI),
        (BROKER_2, "kafka", (), None, ""),
        ("kafka-2:9092", "auto", (), None, KAFKA),
        ("kafka-2:9092", "auto", ("prod-kafka-bootstrap.kafka.svc",), "kafka", STRIMZI),
        ("kafka-2:9092", "auto", ("prod-kafka-bootstrap",), "NAMESPACE", STRIMZI),
        ("kafka-2:9092", "auto", ("kafka-bootstrap", "x.prod-kafka-bootstrap.org"), None, KAFKA),
        ("kafka-2:9092", "strimzi", (), "NAMESPACE", ""),
    ],
)
def test_the_platform(
    address: str,
    platform: Platform,
    bootstrap: tuple[str, ...],
    namespace: str | None,
    says: str,
) -> None:
    """It is assumed by addresses, which the page says, unless an operator sets it."""
    found = target(address, platform, bootstrap)
    assert namespace == found.namespace
    assert bool(says) == any(each.startswith(says or "These") for each in found.about)
    assert any("log.retention.check.interval.ms" in each for each in found.about)


def test_a_namespace_is_that_of_a_broker_first() -> None:
    """The one in the bootstrap server's name may be missing."""
    assert "kafka" == namespace_of({2: BROKER_2}, ["prod-kafka-bootstrap"])


def test_tools_have_no_mechanism_without_a_login() -> None:
    """A mechanism that is set has no effect with mutual TLS; without brokers, only the platform."""
    admin = KafkaAdmin(
        bootstrap_servers=(HostPort("b", 9092),), security_protocol="SSL", sasl_mechanism="PLAIN"
    )
    tools = ToolSettings.of(Settings.model_construct(kafka_admin=admin, platform="auto"))
    assert ("security.protocol=SSL",) == tools.security
    alone = ToolSettings.of(Settings.model_construct(kafka_admin=None, platform="strimzi"))
    assert ToolSettings("strimzi") == alone


def test_kafkas_tools_log_in_where_the_sidecar_does() -> None:
    """Each command has the file, and the page says what is in it."""
    admin = KafkaAdmin(
        bootstrap_servers=(HostPort("b", 9092),),
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
    )
    tools = ToolSettings.of(Settings.model_construct(kafka_admin=admin, platform="auto"))
    assert (
        ToolSettings("auto", ("b",), ("security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512"))
        == tools
    )
    secured = Target.of(Memory(Membership("A", {2: "b:9092"})), tools)
    lines = [line for each in commands(ORDERS, secured, [1]) for line in each.lines]
    of_kafka = [line for line in lines if line.startswith("kafka-")]
    assert len(of_kafka) == 7
    assert {True} == {" --command-config admin.properties " in line for line in of_kafka}
    (sentence,) = (each for each in secured.about if each.startswith("admin.properties"))
    assert "security.protocol=SASL_SSL and sasl.mechanism=SCRAM-SHA-512" in sentence
    plain = KafkaAdmin(bootstrap_servers=(HostPort("b", 9092),))
    tools = ToolSettings.of(Settings.model_construct(kafka_admin=plain, platform="kafka"))
    assert ToolSettings("kafka", ("b",)) == tools


def test_retention_is_a_patch_of_the_kafka_topic(tmp_path: Path) -> None:
    """It is found by the topic's name in Kafka, which may not be the resource's."""
    patch, fallback, *_ = commands(ORDERS, target(BROKER_2), [1])
    prints = (
        'case "$*" in "get kafkatopics"*) echo "$6" | grep -q topicName==.Orders_v1 && '
        "printf orders-v1;; "
        '*) printf "%s\\n" "$@" >> typed;; esac'
    )
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\n{prints}\n", encoding="utf-8")
    kubectl.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    script = "\n".join(patch.lines)
    subprocess.run(
        ["/bin/sh", "-ec", script], cwd=tmp_path, env={"PATH": path}, check=True, timeout=30
    )
    typed = (tmp_path / "typed").read_text(encoding="utf-8").splitlines()
    changing = typed[typed.index("patch") :]
    assert ["patch", "kafkatopic", "-n", "kafka", "orders-v1", "--type", "merge", "-p"] == changing[
        :8
    ]
    assert {"spec": {"config": {"retention.bytes": 20}}} == json.loads(changing[8])
    assert "no KafkaTopic" in fallback.what
    assert "--add-config retention.bytes=20" in fallback.lines[1]


@pytest.mark.parametrize(
    ("log_dir", "claim", "patch"),
    [
        (
            "/var/lib/kafka/data-1/kafka-log2",
            "data-1-prod-hot-2",
            [
                {"op": "test", "path": "/spec/storage/volumes/1/id", "value": 1},
                {"op": "replace", "path": "/spec/storage/volumes/1/size", "value": "150Gi"},
            ],
        ),
        (
            "/var/lib/kafka/data/kafka-log2",
            "data-prod-hot-2",
            [
                {"op": "test", "path": "/spec/storage/type", "value": "persistent-claim"},
                {"op": "replace", "path": "/spec/storage/size", "value": "150Gi"},
            ],
        ),
    ],
)
def test_a_volume_grows_by_a_patch_of_its_node_pool(
    log_dir: str, claim: str, patch: list[dict[str, object]]
) -> None:
    """It is half as large again, and the patch fails where it would change another volume."""
    command = growth(Volume(2, log_dir, 100 * GIB, 5), Pod("prod-hot-2", "hot", "kafka"))
    assert "Grow the volume to 150 GiB" == command.what
    asked, changed = map(shlex.split, command.lines)
    assert ["kubectl", "get", "storageclass"] == asked[:3]
    assert f"get pvc -n kafka {claim} " in asked[3]
    assert ["kubectl", "patch", "kafkanodepool", "-n", "kafka", "hot", "--type", "json", "-p"] == (
        changed[:9]
    )
    assert patch == json.loads(changed[9])


def test_a_size_is_a_whole_number_of_gibibytes() -> None:
    """It is rounded up, so that it is never smaller than the claim."""
    command = growth(Volume(2, "/var/lib/kafka/data/kafka-log2", 2 * GIB - 1, 5), Pod())
    assert size_patch(None, 3)[1] == json.loads(shlex.split(command.lines[1])[9])[1]


def test_only_strimzi_has_a_command_that_grows_a_volume() -> None:
    """Elsewhere nothing is known of what the volume is on."""
    factors = VolumeLimit(Rules(MinAvailableBytes(10), 300.0), 1.0)
    memory = remembering(factors)(whole(0.0, [reading(2, 0.0, {"/d": 5})]))
    (state,) = memory.volumes()
    assert Target("").growth(state, memory) is None
    found = Target("", "kafka").growth(state, memory)
    assert found is not None
    assert "patch kafkanodepool -n kafka POOL" in found.lines[1]
