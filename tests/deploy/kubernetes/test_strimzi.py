"""Strimzi's brokers obey: its operator leaves the callback's properties as they are."""

import copy
import os
import re
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES
from sidecar.cli.callback.jar import callback_jar
from tests.deploy.kubernetes.rendered import (
    KUBERNETES,
    ROOT,
    Resource,
    example,
    named,
    one,
    resources,
)
from tests.deploy.kubernetes.schemas import dropped_by_strimzi, problems

pytestmark = pytest.mark.kustomize

CONFIG_MAP_BYTES = 1 << 20
SIDECAR = "client.quota.callback.sidecar."


@pytest.fixture(scope="module")
def found() -> list[Resource]:
    return example("strimzi")


@pytest.fixture(scope="module")
def kafka(found: list[Resource]) -> Resource:
    return dict(one(found, "Kafka")["spec"]["kafka"])


def test_the_operator_leaves_the_callbacks_properties(kafka: Resource) -> None:
    """None begins as those that it drops, as some of the plugin's do."""
    config = kafka["config"]
    assert CALLBACK_PROPERTIES.items() <= config.items()
    assert [] == [key for key in config if dropped_by_strimzi(key)]
    assert dropped_by_strimzi("client.quota.callback.static.produce")
    assert not dropped_by_strimzi("ssl.cipher.suites")


def test_each_property_of_the_callback_stays(kafka: Resource) -> None:
    """Any of them may be added, and those that are there are known."""
    text = (ROOT / "docs" / "quota-callback-reference.md").read_text("utf-8")
    table = text[text.index("## Properties") : text.index("## Metrics")]
    names = {
        f"{SIDECAR}{name}"
        for row in re.findall(r"^\| ([a-z., ]+) \|", table, re.MULTILINE)
        for name in row.split(", ")
        if name != "property"
    }
    assert f"{SIDECAR}enabled" in names
    assert {key for key in kafka["config"] if key.startswith(SIDECAR)} <= names
    assert [] == [key for key in names if dropped_by_strimzi(key)]


@pytest.fixture(scope="module")
def authorization_of_the_page() -> Resource:
    text = (ROOT / "docs" / "refusal.md").read_text("utf-8")
    (block,) = re.findall(r"^ *```yaml\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return dict(yaml.safe_load(block)["spec"]["kafka"]["authorization"])


def test_the_authorizer_of_the_page_is_one_that_strimzi_takes(
    found: list[Resource], authorization_of_the_page: Resource
) -> None:
    """It is in authorization, since the operator drops it elsewhere, and it takes ACLs."""
    kafka = copy.deepcopy(one(found, "Kafka"))
    kafka["spec"]["kafka"]["authorization"] = authorization_of_the_page
    assert [] == problems(kafka)
    authorization = kafka["spec"]["kafka"]["authorization"]
    assert REFUSING_PROPERTIES["authorizer.class.name"] == authorization["authorizerClass"]
    assert authorization["supportsAdminApi"] is True
    assert all(dropped_by_strimzi(key) for key in REFUSING_PROPERTIES)
    assert not dropped_by_strimzi("allow.everyone.if.no.acl.found")


def test_the_authorizer_takes_the_place_of_simple(
    kafka: Resource, authorization_of_the_page: Resource
) -> None:
    """It is the page's, and nothing else is another one."""
    refusing = one(example("strimzi-authorizer"), "Kafka")["spec"]["kafka"]
    users = {"superUsers": authorization_of_the_page["superUsers"]}
    assert authorization_of_the_page == refusing["authorization"] | users
    assert kafka == refusing | {"authorization": {"type": "simple"}}


def test_super_users_of_simple_stay(tmp_path: Path) -> None:
    """They are those of the resource, where it names some."""
    _write(tmp_path, "strimzi/authorizer", "authorization: {type: simple, superUsers: [CN=admin]}")
    authorization = one(resources(tmp_path), "Kafka")["spec"]["kafka"]["authorization"]
    assert ("custom", ["CN=admin"]) == (authorization["type"], authorization["superUsers"])


@pytest.mark.parametrize("kafka_spec", ["config: {}", "authorization: {type: keycloak}"])
def test_no_other_authorizer_is_replaced(tmp_path: Path, kafka_spec: str) -> None:
    """Where there was none, everybody would be denied everything: it is not rendered at all."""
    _write(tmp_path, "strimzi/authorizer", kafka_spec)
    with pytest.raises(AssertionError, match="/spec/kafka/authorization/type"):
        resources(tmp_path)


def test_cluster_principals_are_never_throttled(found: list[Resource], kafka: Resource) -> None:
    """They are the brokers' and Cruise Control's users, by the cluster's name, as in its plugin."""
    cluster = one(found, "Kafka")["metadata"]["name"]
    own = {f"User:CN={cluster}-{each},O=io.strimzi" for each in ("kafka", "cruise-control")}
    assert own == set(kafka["config"][f"{SIDECAR}excluded.principals"].split(";"))


def test_the_callback_asks_the_service(found: list[Resource], kafka: Resource) -> None:
    """It has the service's name and port."""
    service = one(found, "Service")
    (port,) = service["spec"]["ports"]
    address = f"http://{service['metadata']['name']}:{port['port']}"
    assert address == kafka["config"][f"{SIDECAR}url"]


def test_the_jar_is_on_the_brokers_class_path(kafka: Resource) -> None:
    """It is where our image has it, below what Strimzi lets one mount."""
    container = kafka["template"]["kafkaContainer"]
    (volume,) = kafka["template"]["pod"]["volumes"]
    mount = named(container["volumeMounts"], volume["name"])
    assert mount["mountPath"].startswith("/mnt/")
    jar = named(container["env"], "CLASSPATH")["value"].removeprefix(mount["mountPath"])
    assert (
        "/opt/throttle-sidecar/lib/python3.11/site-packages/sidecar/"
        "throttle-sidecar-quota-callback.jar"
    ) == jar


def test_the_jar_may_come_from_a_config_map() -> None:
    """It is small enough for one, in base64 with the request; it replaces the image."""
    kafka = one(example("strimzi-config-map"), "Kafka")["spec"]["kafka"]
    (volume,) = kafka["template"]["pod"]["volumes"]
    container = kafka["template"]["kafkaContainer"]
    mount = named(container["volumeMounts"], volume["name"])
    assert {"name", "configMap"} == set(volume)
    jar = callback_jar()
    assert f"{mount['mountPath']}/{jar.name}" == named(container["env"], "CLASSPATH")["value"]
    assert jar.stat().st_size < CONFIG_MAP_BYTES / 1.4


def test_the_operators_own_plugin_is_off(tmp_path: Path) -> None:
    """It would take the callback's place; the operator's other settings stay."""
    _write(tmp_path, "strimzi", "quotas: {type: strimzi}, config: {num.io.threads: 8}")
    kafka = one(resources(tmp_path), "Kafka")["spec"]["kafka"]
    assert "quotas" not in kafka
    assert 8 == kafka["config"]["num.io.threads"]


def test_the_network_policy_knows_the_brokers(found: list[Resource], kafka: Resource) -> None:
    """Their pods have the label by which they are admitted."""
    policy = one(found, "NetworkPolicy")["spec"]
    (peer,) = policy["ingress"][0]["from"]
    labels = kafka["template"]["pod"]["metadata"]["labels"]
    assert peer["podSelector"]["matchLabels"].items() <= labels.items()


def test_the_sidecar_is_the_kafka_user(found: list[Resource], kafka: Resource) -> None:
    """Its certificate and the cluster's are mounted where the settings say, in Strimzi's names."""
    cluster = one(found, "Kafka")["metadata"]["name"]
    user = one(found, "KafkaUser")
    assert cluster == user["metadata"]["labels"]["strimzi.io/cluster"]
    pod = one(found, "Deployment")["spec"]["template"]["spec"]
    secrets = {
        mount["mountPath"]: named(pod["volumes"], mount["name"])["secret"]["secretName"]
        for mount in pod["containers"][0]["volumeMounts"]
        if "secret" in named(pod["volumes"], mount["name"])
    }
    settings = one(found, "ConfigMap")["data"]
    files = {
        key.removeprefix("SIDECAR_KAFKA_ADMIN_SSL_"): value.rpartition("/")
        for key, value in settings.items()
        if key.startswith("SIDECAR_KAFKA_ADMIN_SSL_")
    }
    where = {key: (secrets[folder], file) for key, (folder, _, file) in files.items()}
    assert {
        "TRUSTSTORE_LOCATION": (f"{cluster}-cluster-ca-cert", "ca.crt"),
        "KEYSTORE_LOCATION": (user["metadata"]["name"], "user.crt"),
        "KEYSTORE_KEY_LOCATION": (user["metadata"]["name"], "user.key"),
    } == where
    (listener,) = kafka["listeners"]
    assert (
        f"{cluster}-kafka-bootstrap:{listener['port']}"
        == settings["SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS"]
    )
    assert listener["authentication"]["type"] == user["spec"]["authentication"]["type"]


def test_the_user_may_describe_and_no_more(found: list[Resource]) -> None:
    """DESCRIBE on the cluster is the one ACL that Kafka needs."""
    (acl,) = one(found, "KafkaUser")["spec"]["authorization"]["acls"]
    assert {"resource": {"type": "cluster"}, "operations": ["Describe"]} == acl


def _write(folder: Path, component: str, kafka_spec: str) -> None:
    """A kustomization of a Kafka resource with one component."""
    parts = os.path.relpath(KUBERNETES, folder.resolve())
    (folder / "kustomization.yaml").write_text(
        f"resources: [kafka.yaml, {parts}/per-cluster]\ncomponents: [{parts}/{component}]\n"
    )
    (folder / "kafka.yaml").write_text(
        "apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nmetadata: {name: my-cluster}\n"
        f"spec: {{kafka: {{{kafka_spec}}}}}\n"
    )
