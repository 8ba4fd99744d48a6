"""What is written down for brokers: with it they obey, and nothing else of theirs changes."""

import copy
import re
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES
from sidecar.cli.callback.jar import callback_jar
from sidecar.formats.java_properties import parse_properties
from sidecar.settings import load
from tests.deploy.helm.patched import example, json_patch, merge, patched
from tests.deploy.helm.rendered import (
    BESIDE_BROKER,
    CHART,
    NAMESPACE,
    PER_CLUSTER,
    ROOT,
    STRIMZI,
    Resource,
    Values,
    for_brokers,
    merged,
    named,
    one,
    our_containers,
    patch_of,
    render,
    settings_of,
)
from tests.deploy.kubernetes.schemas import dropped_by_strimzi

pytestmark = pytest.mark.helm

CONFIG_MAP_BYTES = 1 << 20
SIDECAR = "client.quota.callback.sidecar."
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
JAR = "throttle-sidecar-quota-callback.jar"
SHARED = {"besideBroker": {"service": True}}


def beside(values: Values = BESIDE_BROKER) -> Resource:
    """The example's StatefulSet with the sidecar."""
    return patched(render(values))


def spec_of(stateful_set: Resource) -> Any:
    return stateful_set["spec"]["template"]["spec"]


def kafka_of(values: Values = STRIMZI) -> Resource:
    """The spec of the example's brokers with the patch."""
    return dict(patched(render(values))["spec"]["kafka"])


class TestBesideBroker:
    """The patch of a StatefulSet."""

    def test_the_jar_is_on_the_brokers_class_path(self) -> None:
        """The init container writes what the broker reads, and what CLASSPATH names."""
        pod = spec_of(beside())
        init, broker = pod["initContainers"][0], named(pod["containers"], "kafka")
        assert ["callback", "copy"] == init["args"][:2]
        (written,) = (each for each in init["volumeMounts"] if each["mountPath"] == init["args"][2])
        (read,) = (each for each in broker["volumeMounts"] if each["name"] == written["name"])
        assert f"{read['mountPath']}/{JAR}" == named(broker["env"], "CLASSPATH")["value"]
        assert read["readOnly"]
        assert not written.get("readOnly")
        assert {"name": written["name"], "emptyDir": {}} in pod["volumes"]

    def test_the_broker_has_the_callbacks_properties(self) -> None:
        """They have the form of the image's environment."""
        broker = named(spec_of(beside())["containers"], "kafka")
        found = {each["name"]: each.get("value") for each in broker["env"]}
        wanted = {
            f"KAFKA_{key.upper().replace('.', '_')}": value
            for key, value in CALLBACK_PROPERTIES.items()
        }
        assert wanted == {key: found.get(key) for key in wanted}

    def test_nothing_of_ours_makes_the_pod_unready(self) -> None:
        """The sidecar has no readiness or startup probe; its liveness probe restarts it alone."""
        sidecar = named(spec_of(beside())["containers"], "throttle-sidecar")
        assert "readinessProbe" not in sidecar
        assert "startupProbe" not in sidecar
        asked = sidecar["livenessProbe"]["httpGet"]
        assert ("/healthz", "sidecar-metrics") == (asked["path"], asked["port"])

    def test_nothing_of_ours_evicts_the_pod(self) -> None:
        """It has no limit of a volume or of ephemeral storage, above which pods are evicted."""
        stateful_set = beside()
        folders = [
            each["emptyDir"] for each in spec_of(stateful_set)["volumes"] if "emptyDir" in each
        ]
        assert [{}, {}, {}] == folders
        for container in our_containers(spec_of(stateful_set)):
            for side in container["resources"].values():
                assert "ephemeral-storage" not in side

    def test_the_api_is_for_the_broker_alone(self) -> None:
        """Without the Service it is on the loopback address; probes use the metrics' address."""
        found = render(BESIDE_BROKER)
        settings = load(environ=settings_of(found)).settings
        assert "127.0.0.1" == settings.http_listen.host
        assert settings.metrics_listen is not None
        (port,) = named(spec_of(beside())["containers"], "throttle-sidecar")["ports"]
        assert ("0.0.0.0", port["containerPort"]) == (
            settings.metrics_listen.host,
            settings.metrics_listen.port,
        )
        assert [] == [each for each in found if each["kind"] == "Service"]

    def test_a_broker_whose_sidecar_is_dead_asks_the_others(self) -> None:
        """Its own sidecar's address is the first, and the second a Service of all of them."""
        values = merged(BESIDE_BROKER, SHARED)
        found, stateful_set = render(values), beside(values)
        containers = spec_of(stateful_set)["containers"]
        broker, sidecar = (named(containers, each) for each in ("kafka", "throttle-sidecar"))
        urls = named(broker["env"], "KAFKA_CLIENT_QUOTA_CALLBACK_SIDECAR_URL")["value"]
        service = one(found, "Service")
        labels = stateful_set["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["selector"].items() <= labels.items()
        (port,) = service["spec"]["ports"]
        target = named(sidecar["ports"], port["targetPort"])["containerPort"]
        assert f"0.0.0.0:{target}" == settings_of(found)["SIDECAR_HTTP_LISTEN"]
        other = f"http://{service['metadata']['name']}.{NAMESPACE}.svc:{port['port']}"
        assert f"http://127.0.0.1:{target},{other}" == urls

    def test_our_containers_have_no_service_account_token(self) -> None:
        """An empty folder is mounted in its place; the broker's own is untouched."""
        pod = spec_of(beside())
        for container in our_containers(pod):
            (over,) = (each for each in container["volumeMounts"] if each["mountPath"] == TOKEN)
            assert over["readOnly"]
            assert {} == named(pod["volumes"], over["name"])["emptyDir"]
        broker = named(pod["containers"], "kafka")
        assert [] == [each for each in broker["volumeMounts"] if each["mountPath"] == TOKEN]
        assert "automountServiceAccountToken" not in pod

    def test_a_setting_that_changes_restarts_no_broker(self) -> None:
        """The patch is the same with other settings."""
        other = merged(BESIDE_BROKER, {"limit": {"minAvailableRatio": 0.2}})
        assert patch_of(render(BESIDE_BROKER)) == patch_of(render(other))

    def test_a_secret_that_is_not_there_stops_no_broker(self) -> None:
        """Only the sidecar stops, with a message: a pod without a volume starts no container."""
        values = merged(BESIDE_BROKER, {"tokenSecret": {"name": "token"}})
        volumes = spec_of(beside(values))["volumes"]
        others = [each for each in volumes if "emptyDir" not in each]
        assert ["throttle-sidecar-token"] == [each["name"] for each in others]
        assert others[0]["secret"]["optional"]

    def test_all_else_is_as_it_was(self) -> None:
        """Without what was added, the StatefulSet is the operator's."""
        before, rest = example("StatefulSet"), copy.deepcopy(beside())
        del rest["spec"]["template"]["metadata"]["labels"]["throttle-sidecar/release"]
        pod, was = spec_of(rest), spec_of(before)["containers"][0]
        for part in ("initContainers", "volumes"):
            pod.pop(part)
        pod["containers"] = [each for each in pod["containers"] if each["name"] == "kafka"]
        (broker,) = pod["containers"]
        for part in ("env", "volumeMounts"):
            broker[part] = [each for each in broker[part] if each in was[part]]
        assert before == rest


class TestStrimzi:
    """The patch of a Kafka resource, and the user."""

    def test_the_operator_leaves_the_callbacks_properties(self) -> None:
        """None begins as those that it drops, as some of the plugin's do."""
        config = kafka_of()["config"]
        assert CALLBACK_PROPERTIES.items() <= config.items()
        assert [] == [key for key in config if dropped_by_strimzi(key)]
        assert dropped_by_strimzi("client.quota.callback.static.produce")
        assert not dropped_by_strimzi("ssl.cipher.suites")

    def test_each_property_of_the_callback_stays(self) -> None:
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
        assert {key for key in kafka_of()["config"] if key.startswith(SIDECAR)} <= names
        assert [] == [key for key in names if dropped_by_strimzi(key)]

    def test_the_authorizer_of_the_page_is_one_that_strimzi_takes(self) -> None:
        """It is in authorization, since the operator drops it elsewhere, and it takes ACLs."""
        page = authorization_of_the_page()
        assert REFUSING_PROPERTIES["authorizer.class.name"] == page["authorizerClass"]
        assert page["supportsAdminApi"] is True
        assert all(dropped_by_strimzi(key) for key in REFUSING_PROPERTIES)
        assert not dropped_by_strimzi("allow.everyone.if.no.acl.found")

    def test_the_authorizer_takes_the_place_of_simple(self) -> None:
        """It is the page's, and the super users stay."""
        page = authorization_of_the_page()
        kafka = refusing({"type": "simple", "superUsers": page["superUsers"]})
        assert page == kafka["spec"]["kafka"]["authorization"]

    @pytest.mark.parametrize("before", [None, {"type": "keycloak"}])
    def test_no_other_authorizer_is_replaced(self, before: Resource | None) -> None:
        """Without one, everybody would be denied everything: the patch does not apply."""
        with pytest.raises(AssertionError, match="/spec/kafka/authorization/type"):
            refusing(before)

    def test_cluster_principals_are_never_throttled(self) -> None:
        """They are the brokers' and Cruise Control's users, by the cluster's name."""
        own = {f"User:CN=my-cluster-{each},O=io.strimzi" for each in ("kafka", "cruise-control")}
        assert own == set(kafka_of()["config"][f"{SIDECAR}excluded.principals"].split(";"))

    def test_the_callback_asks_the_service(self) -> None:
        """It has the service's name and port."""
        service = one(render(STRIMZI), "Service")
        (port,) = service["spec"]["ports"]
        address = f"http://{service['metadata']['name']}.{NAMESPACE}.svc:{port['port']}"
        assert address == kafka_of()["config"][f"{SIDECAR}url"]

    def test_the_callback_has_the_fallback_of_the_sidecar(self) -> None:
        """Without a sidecar, brokers do the same as with one that can't see."""
        fallback = {"settings": {"SIDECAR_THROTTLE_FACTOR_FALLBACK": 0.0}}
        config = kafka_of(merged(STRIMZI, fallback))["config"]
        assert "0" == config[f"{SIDECAR}fallback"]
        assert f"{SIDECAR}fallback" not in kafka_of()["config"]

    @pytest.mark.parametrize("values", [STRIMZI, PER_CLUSTER, BESIDE_BROKER])
    def test_a_reserve_is_released_before_kafka_opens_its_log(self, values: Values) -> None:
        """Brokers have both properties, and the operator drops none."""
        texts = for_brokers(render(merged(values, {"callback": {"reserveBytes": 1 << 30}})))
        reporter = ("kafka.metrics.reporters", "throttlesidecar.ReserveReporter")
        for key, value in ((f"{SIDECAR}reserve.bytes", "1073741824"), reporter):
            variable = f"KAFKA_{key.upper().replace('.', '_')}"
            text = "".join(texts.values()).replace('"', "").replace(f"{variable}\n", f"{key}\n")
            assert re.search(rf"{key}(: |=|\n +value: ){value}\n", text)
            assert not dropped_by_strimzi(key)

    def test_the_jar_is_on_the_brokers_class_path(self) -> None:
        """It is where our image has it, below what Strimzi lets one mount."""
        kafka = kafka_of()
        container = kafka["template"]["kafkaContainer"]
        (volume,) = kafka["template"]["pod"]["volumes"]
        mount = named(container["volumeMounts"], volume["name"])
        assert mount["mountPath"].startswith("/mnt/")
        jar = named(container["env"], "CLASSPATH")["value"].removeprefix(mount["mountPath"])
        assert f"/opt/throttle-sidecar/lib/python3.11/site-packages/sidecar/{JAR}" == jar

    def test_the_jar_may_come_from_a_config_map(self) -> None:
        """It is small enough for one, in base64 with the request; it replaces the image."""
        kafka = kafka_of(merged(STRIMZI, {"callback": {"jar": "configMap"}}))
        (volume,) = kafka["template"]["pod"]["volumes"]
        container = kafka["template"]["kafkaContainer"]
        mount = named(container["volumeMounts"], volume["name"])
        assert {"name", "configMap"} == set(volume)
        jar = callback_jar()
        assert f"{mount['mountPath']}/{jar.name}" == named(container["env"], "CLASSPATH")["value"]
        assert jar.stat().st_size < CONFIG_MAP_BYTES / 1.4

    def test_the_image_of_the_brokers_may_have_the_jar(self) -> None:
        """Then nothing is mounted."""
        template = kafka_of(merged(STRIMZI, {"callback": {"jar": "none"}}))["template"]
        assert "kafkaContainer" not in template
        assert ["metadata"] == list(template["pod"])

    def test_the_operators_own_plugin_is_off(self) -> None:
        """It would take the callback's place; the operator's other settings stay."""
        before = example("Kafka")
        spec = {"quotas": {"type": "strimzi"}, "config": {"num.io.threads": 8}}
        before["spec"]["kafka"] |= spec
        kafka = merge(before, patch_of(render(STRIMZI)))["spec"]["kafka"]
        assert "quotas" not in kafka
        assert 8 == kafka["config"]["num.io.threads"]

    @pytest.mark.parametrize("authentication", ["tls", "scram-sha-512"])
    def test_the_sidecar_is_the_kafka_user(self, authentication: str) -> None:
        """What is mounted are its Secret and the cluster's CA, by the names of Strimzi."""
        values = merged(STRIMZI, {"strimzi": {"authentication": authentication}})
        found = render(values)
        user = one(found, "KafkaUser")
        assert "my-cluster" == user["metadata"]["labels"]["strimzi.io/cluster"]
        assert authentication == user["spec"]["authentication"]["type"]
        pod = one(found, "Deployment")["spec"]["template"]["spec"]
        secrets = {
            each["mountPath"]: named(pod["volumes"], each["name"])["secret"]["secretName"]
            for each in pod["containers"][0]["volumeMounts"]
            if "secret" in named(pod["volumes"], each["name"])
        }
        where = {
            key.removeprefix("SIDECAR_KAFKA_ADMIN_"): (secrets[folder], value[len(folder) + 1 :])
            for key, value in settings_of(found).items()
            for folder in secrets
            if value == folder or value.startswith(f"{folder}/")
        }
        name = user["metadata"]["name"]
        of_user = {
            "tls": {
                "SSL_KEYSTORE_LOCATION": (name, "user.crt"),
                "SSL_KEYSTORE_KEY_LOCATION": (name, "user.key"),
            },
            "scram-sha-512": {"SASL_PASSWORD_FILE": (name, "password")},
        }
        trusted = {"SSL_TRUSTSTORE_LOCATION": ("my-cluster-cluster-ca-cert", "")}
        assert trusted | of_user[authentication] == where
        if authentication == "scram-sha-512":
            assert name == settings_of(found)["SIDECAR_KAFKA_ADMIN_SASL_USERNAME"]

    def test_the_listener_of_the_example_is_the_one_that_is_asked(self) -> None:
        """It has the port and the authentication of the defaults."""
        (listener,) = kafka_of()["listeners"]
        settings = settings_of(render(STRIMZI))
        address = f"my-cluster-kafka-bootstrap:{listener['port']}"
        assert address == settings["SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS"]
        assert "tls" == listener["authentication"]["type"]

    def test_the_user_may_describe_and_no_more(self) -> None:
        """DESCRIBE on the cluster is the one ACL that the throttle needs."""
        (acl,) = one(render(STRIMZI), "KafkaUser")["spec"]["authorization"]["acls"]
        assert {"resource": {"type": "cluster"}, "operations": ["Describe"]} == acl


def refusing(authorization: Resource | None) -> Resource:
    """The example's Kafka with the patch of the authorizer."""
    kafka = example("Kafka")
    kafka["spec"]["kafka"]["authorization"] = authorization or {}
    texts = for_brokers(render(merged(STRIMZI, {"callback": {"authorizer": True}})))
    return json_patch(kafka, yaml.safe_load(texts["authorizer.yaml"]))


def authorization_of_the_page() -> Resource:
    text = (ROOT / "docs" / "refusal.md").read_text("utf-8")
    (block,) = re.findall(r"^ *```yaml\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return dict(yaml.safe_load(block)["spec"]["kafka"]["authorization"])


class TestOtherClusters:
    """The properties of brokers elsewhere."""

    def test_the_brokers_have_the_callbacks_properties(self) -> None:
        """They are those of every broker with the callback, and the address of the Service."""
        found = properties(PER_CLUSTER)
        assert CALLBACK_PROPERTIES.items() <= found.items()
        assert f"http://throttle-sidecar.{NAMESPACE}.svc:7070" == found[f"{SIDECAR}url"]

    def test_they_may_have_the_authorizer(self) -> None:
        """It is the class that the tests install."""
        found = properties(merged(PER_CLUSTER, {"callback": {"authorizer": True}}))
        assert REFUSING_PROPERTIES["authorizer.class.name"] == found["authorizer.class.name"]

    def test_java_reads_a_principal_with_a_backslash_as_it_is(self) -> None:
        """In the file, and in what the images of Apache and Confluent make of variables."""
        mirror = r"User:CN=mirror,O=Acme\, Inc"
        own = {"callback": {"excludedPrincipals": [mirror]}}
        key = f"{SIDECAR}excluded.principals"
        assert mirror == properties(merged(PER_CLUSTER, own))[key]
        broker = named(spec_of(beside(merged(BESIDE_BROKER, own)))["containers"], "kafka")
        variable = named(broker["env"], f"KAFKA_{key.upper().replace('.', '_')}")
        assert {key: mirror} == read(f"{key}={variable['value']}")
        # The operator escapes it by itself.
        assert mirror in kafka_of(merged(STRIMZI, own))["config"][key]


def properties(values: Values) -> dict[str, str]:
    return read(for_brokers(render(values))["broker.properties"])


def read(text: str) -> dict[str, str]:
    return {key: value for key, value, _ in parse_properties(text.encode())}


class TestNotes:
    """What is left to do, with the names of this release."""

    def test_helm_prints_what_the_config_map_has(self) -> None:
        """There is one text, also for people who use helm template."""
        text = (CHART / "templates" / "NOTES.txt").read_text("utf-8")
        assert '{{ include "throttle-sidecar.notes" . }}\n' == text

    @pytest.mark.parametrize(
        ("values", "change"),
        [
            (STRIMZI, "patch kafka my-cluster --type merge --patch"),
            (merged(BESIDE_BROKER, {"besideBroker": {"statefulSet": "b"}}), "patch statefulset b"),
        ],
    )
    def test_they_have_the_patch(self, values: Values, change: str) -> None:
        """They have the command that applies it, from a ConfigMap that is there."""
        found = render(values, "prod")
        notes = for_brokers(found)["notes.txt"]
        (line,) = (line for line in notes.splitlines() if change in line)
        ((name, key),) = re.findall(r"configmap (\S+) --output jsonpath='\{\.data\.(\S+)\}'", line)
        assert "patch\\.yaml" == key
        assert one(found, "ConfigMap", name)["data"]["patch.yaml"]
        assert f"--namespace {NAMESPACE}" in line

    def test_they_show_the_patch_of_strimzi(self) -> None:
        """It is the same text, further in."""
        texts = for_brokers(render(STRIMZI))
        shown = [line.strip() for line in texts["notes.txt"].splitlines()]
        for line in texts["patch.yaml"].splitlines():
            assert line.strip() in shown

    def test_they_show_the_properties_of_other_brokers(self) -> None:
        """All of them."""
        notes = for_brokers(render(PER_CLUSTER, "prod"))["notes.txt"]
        for key, value in properties(PER_CLUSTER).items():
            expected = value.replace("//throttle-sidecar.", "//prod-throttle-sidecar.")
            assert f"{key}={expected}" in notes

    def test_they_say_whom_the_network_policy_admits(self) -> None:
        """Nothing sets the label by itself, except the patch of Strimzi."""
        policy = {"networkPolicy": {"enabled": True}}
        for enforcement in ("callback", "client-quotas", "none"):
            values = merged(PER_CLUSTER, {**policy, "enforcement": enforcement})
            notes = for_brokers(render(values))["notes.txt"]
            assert "set networkPolicy.brokers" in notes
        for silent in (merged(STRIMZI, policy), PER_CLUSTER):
            assert "networkPolicy.brokers" not in for_brokers(render(silent))["notes.txt"]
        watched = merged(STRIMZI, {**policy, "enforcement": "none"})
        assert "set networkPolicy.brokers" in for_brokers(render(watched))["notes.txt"]

    def test_they_have_the_command_that_checks(self) -> None:
        """It runs in a pod of this release."""
        notes = for_brokers(render(PER_CLUSTER, "prod"))["notes.txt"]
        assert "exec deploy/prod-throttle-sidecar -- throttle-sidecar check" in notes
        notes = for_brokers(render(BESIDE_BROKER, "prod"))["notes.txt"]
        assert "exec kafka-0 --container throttle-sidecar -- throttle-sidecar check" in notes

    def test_they_say_how_the_jar_gets_into_its_config_map(self) -> None:
        """And how the authorizer gets into the Kafka resource."""
        values = merged(STRIMZI, {"callback": {"jar": "configMap", "authorizer": True}})
        notes = for_brokers(render(values))["notes.txt"]
        assert "create configmap throttle-sidecar-quota-callback --from-file" in notes
        assert "--type json --patch" in notes
        assert "authorizer\\.yaml" in notes
