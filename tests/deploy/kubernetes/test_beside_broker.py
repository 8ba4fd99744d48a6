"""The sidecar in a broker's pod: the broker finds the jar, and nothing of ours can take it away."""

import copy
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from kafka_lab.callback import CALLBACK_PROPERTIES
from tests.deploy.kubernetes.rendered import (
    KUBERNETES,
    Resource,
    example,
    named,
    one,
    our_containers,
    pod_templates,
    resources,
)

pytestmark = pytest.mark.kustomize

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(scope="module")
def brokers() -> Resource:
    """The operator's own StatefulSet."""
    text = (KUBERNETES / "examples" / "beside-broker" / "kafka.yaml").read_text("utf-8")
    return one(list(yaml.safe_load_all(text)), "StatefulSet")


@pytest.fixture(scope="module")
def patched() -> Resource:
    """The same with the sidecar."""
    return one(example("beside-broker"), "StatefulSet")


def spec_of(stateful_set: Resource) -> Any:
    return stateful_set["spec"]["template"]["spec"]


def test_the_jar_is_on_the_brokers_class_path(patched: Resource) -> None:
    """What the init container writes is what the broker reads, and what CLASSPATH names."""
    pod = spec_of(patched)
    init, broker = pod["initContainers"][0], named(pod["containers"], "kafka")
    assert ["callback", "copy"] == init["args"][:2]
    (written,) = (each for each in init["volumeMounts"] if each["mountPath"] == init["args"][2])
    (read,) = (each for each in broker["volumeMounts"] if each["name"] == written["name"])
    jar = f"{read['mountPath']}/throttle-sidecar-quota-callback.jar"
    assert jar == named(broker["env"], "CLASSPATH")["value"]
    assert read["readOnly"]
    assert not written.get("readOnly")
    assert {"name": written["name"], "emptyDir": {}} in pod["volumes"]


def test_the_broker_has_the_callbacks_properties(patched: Resource) -> None:
    """They are those of every broker with the callback, in the form of the image's environment."""
    broker = named(spec_of(patched)["containers"], "kafka")
    found = {each["name"]: each.get("value") for each in broker["env"]}
    wanted = {
        f"KAFKA_{key.upper().replace('.', '_')}": value
        for key, value in CALLBACK_PROPERTIES.items()
    }
    assert wanted == {key: found.get(key) for key in wanted}


def test_nothing_of_ours_makes_the_pod_unready(patched: Resource) -> None:
    """The sidecar has no readiness or startup probe; its liveness probe restarts only itself."""
    sidecar = named(spec_of(patched)["containers"], "throttle-sidecar")
    assert "readinessProbe" not in sidecar
    assert "startupProbe" not in sidecar
    asked = sidecar["livenessProbe"]["httpGet"]
    assert ("/healthz", "sidecar-metrics") == (asked["path"], asked["port"])


def test_nothing_of_ours_evicts_the_pod(patched: Resource) -> None:
    """It has no limit of a volume or of ephemeral storage, beyond which pods are evicted."""
    folders = [each["emptyDir"] for each in spec_of(patched)["volumes"] if "emptyDir" in each]
    assert [{}, {}, {}] == folders
    for container in our_containers(patched["spec"]["template"]):
        for side in container["resources"].values():
            assert "ephemeral-storage" not in side


def test_the_api_is_for_the_broker_alone(tmp_path: Path) -> None:
    """Without sidecars-service it is on the loopback address; probes use the metrics' address."""
    parts = os.path.relpath(KUBERNETES, tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(
        f"resources: [kafka.yaml]\ncomponents: [{parts}/beside-broker]\n"
        "images: [{name: throttle-sidecar, newName: registry.example.org/throttle-sidecar}]\n"
    )
    shutil.copy(KUBERNETES / "examples" / "beside-broker" / "kafka.yaml", tmp_path)
    found = resources(tmp_path)
    (template,) = pod_templates(found)
    (sidecar,) = (each for each in our_containers(template) if each["args"] == ["run"])
    variables = {each["name"]: each["value"] for each in sidecar["env"]}
    assert "SIDECAR_HTTP_LISTEN" not in variables
    (port,) = sidecar["ports"]
    assert f"0.0.0.0:{port['containerPort']}" == variables["SIDECAR_METRICS_LISTEN"]
    assert ["kafka"] == [each["metadata"]["name"] for each in found if each["kind"] == "Service"]


def test_a_broker_whose_sidecar_is_dead_asks_the_others(patched: Resource) -> None:
    """Its own sidecar's address is the first, and the second a Service of all of them."""
    pod = spec_of(patched)
    broker, sidecar = (named(pod["containers"], each) for each in ("kafka", "throttle-sidecar"))
    urls = named(broker["env"], "KAFKA_CLIENT_QUOTA_CALLBACK_SIDECAR_URL")["value"]
    service = one(example("beside-broker"), "Service", "throttle-sidecar")
    labels = patched["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    (port,) = service["spec"]["ports"]
    listen = named(sidecar["env"], "SIDECAR_HTTP_LISTEN")["value"]
    target = named(sidecar["ports"], port["targetPort"])["containerPort"]
    assert f"0.0.0.0:{target}" == listen
    other = f"http://{service['metadata']['name']}:{port['port']}"
    assert f"http://127.0.0.1:{target},{other}" == urls


def test_our_containers_have_no_service_account_token(patched: Resource) -> None:
    """An empty folder is mounted in its place; the broker's own is untouched."""
    for container in our_containers(patched["spec"]["template"]):
        (over,) = (each for each in container["volumeMounts"] if each["mountPath"] == TOKEN)
        assert over["readOnly"]
        assert {} == named(spec_of(patched)["volumes"], over["name"])["emptyDir"]
    broker = named(spec_of(patched)["containers"], "kafka")
    assert [] == [each for each in broker["volumeMounts"] if each["mountPath"] == TOKEN]
    assert "automountServiceAccountToken" not in spec_of(patched)


def test_a_setting_that_changes_restarts_no_broker(patched: Resource) -> None:
    """The settings' name has no hash, which would be a change of the pods."""
    sidecar = named(spec_of(patched)["containers"], "throttle-sidecar")
    assert [{"configMapRef": {"name": "throttle-sidecar"}}] == sidecar["envFrom"]


def test_a_secret_that_is_not_there_stops_no_broker(patched: Resource) -> None:
    """Only the sidecar stops, with a message: a pod without a volume starts no container."""
    others = [each for each in spec_of(patched)["volumes"] if "emptyDir" not in each]
    assert ["throttle-sidecar-token"] == [each["name"] for each in others]
    assert others[0]["secret"]["optional"]


def test_all_else_is_as_it_was(brokers: Resource, patched: Resource) -> None:
    """Without what was added the StatefulSet is the operator's."""
    rest = copy.deepcopy(patched)
    rest["metadata"].pop("namespace")
    for label in ("throttle-sidecar/scrape", "throttle-sidecar/api"):
        del rest["spec"]["template"]["metadata"]["labels"][label]
    pod = spec_of(rest)
    for part in ("initContainers", "volumes"):
        pod.pop(part)
    pod["containers"] = [each for each in pod["containers"] if each["name"] == "kafka"]
    (broker,) = pod["containers"]
    was = spec_of(brokers)["containers"][0]
    for part in ("env", "volumeMounts"):
        broker[part] = [each for each in broker[part] if each in was[part]]
    assert brokers == rest
