"""Kustomize renders each example, and an API server accepts it."""

import copy
import re

import pytest

from sidecar import __version__
from tests.deploy.kubernetes.rendered import (
    EXAMPLES,
    KUBERNETES,
    OURS,
    ROOT,
    Resource,
    example,
    named,
    one,
    our_containers,
    pod_templates,
    resources,
)
from tests.deploy.kubernetes.schemas import problems

pytestmark = pytest.mark.kustomize

DOCKERFILE = ROOT / "Dockerfile"
UNPINNED = ("latest", "main", "")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_resource_is_of_its_schema(name: str) -> None:
    """It is Kubernetes' of the oldest and the newest version, Strimzi's or Prometheus'."""
    wrong = {f"{each['kind']}: {found}" for each in example(name) for found in problems(each)}
    assert set() == wrong


def test_a_base_is_of_its_schema_alone() -> None:
    """The one that is no component."""
    assert [] == [
        found for each in resources(KUBERNETES / "per-cluster") for found in problems(each)
    ]


def test_every_part_is_in_an_example() -> None:
    """No part is only written down."""
    files = {
        each.parent: each.read_text("utf-8") for each in KUBERNETES.rglob("kustomization.yaml")
    }
    examples = {folder for folder in files if folder.parent == KUBERNETES / "examples"}
    used = {
        (folder / name).resolve()
        for folder in examples
        for name in re.findall(r"^  - (\.\./\S+)$", files[folder], re.MULTILINE)
    }
    assert set(files) - examples == used - examples
    assert set(EXAMPLES) == {each.name for each in examples}


MISTAKES = {
    "Deployment": ("spec", "template", "spec", "hostUsrs"),
    "Service": ("spec", "prots"),
    "NetworkPolicy": ("spec", "engress"),
    "Kafka": ("spec", "kafka", "conifg"),
    "KafkaUser": ("spec", "authorization", "acl"),
    "KafkaNodePool": ("spec", "role"),
    "PodMonitor": ("spec", "podMetricsEndpoint"),
    "PrometheusRule": ("spec", "rules"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_field_that_there_is_not_is_found(kind: str) -> None:
    """It is in each kind, so that none is compared with a schema that takes all."""
    wrong = copy.deepcopy(next(each for each in example("strimzi") if each["kind"] == kind))
    *folders, field = MISTAKES[kind]
    inner: Resource = wrong
    for folder in folders:
        inner = inner[folder]
    inner[field] = {}
    assert any(field in found for found in problems(wrong)), problems(wrong)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_image_has_a_tag(name: str) -> None:
    """Our image has this version's, and everywhere the example's own registry."""
    templates = list(pod_templates(example(name)))
    images = [
        each["image"]
        for template in templates
        for each in [
            *template["spec"].get("initContainers", []),
            *template["spec"]["containers"],
        ]
    ]
    images += [
        volume["image"]["reference"]
        for each in example(name)
        if each["kind"] == "Kafka"
        for volume in each["spec"]["kafka"]["template"]["pod"]["volumes"]
        if "image" in volume
    ]
    tags = {image: image.rpartition("/")[2].partition(":")[2] for image in images}
    assert [] == [image for image, tag in tags.items() if tag in UNPINNED]
    ours = {image for image in images if OURS in image}
    assert {f"registry.example.org/{OURS}:{__version__}"} == ours


def test_our_image_has_this_versions_tag_where_it_is_written() -> None:
    """It has it also where an example's kustomization would put another."""
    text = "".join(each.read_text("utf-8") for each in sorted(KUBERNETES.rglob("*.yaml")))
    written = re.findall(rf"^ +(?:image|reference): ({OURS}\S*)$", text, re.MULTILINE)
    assert 4 == len(written)
    assert {f"{OURS}:{__version__}"} == set(written)


@pytest.mark.parametrize("name", EXAMPLES)
def test_our_containers_may_do_nothing(name: str) -> None:
    """They are as Pod Security Standards' restricted has it, with a root that can't be written."""
    for template in pod_templates(example(name)):
        pod = template["spec"].get("securityContext", {})
        for container in our_containers(template):
            own = pod | container["securityContext"]
            assert own["runAsNonRoot"]
            assert 10001 == own["runAsUser"] == own["runAsGroup"]
            assert {"type": "RuntimeDefault"} == own["seccompProfile"]
            assert own["readOnlyRootFilesystem"]
            assert not own["allowPrivilegeEscalation"]
            assert {"drop": ["ALL"]} == own["capabilities"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_our_containers_ask_for_what_was_measured(name: str) -> None:
    """The memory limit is above the measured use; a limit of CPU would stretch polls."""
    for template in pod_templates(example(name)):
        for container in our_containers(template):
            resources = container["resources"]
            assert {"cpu": "10m", "memory": "96Mi"} == resources["requests"]
            assert {"memory": "256Mi"} == resources["limits"]


def test_the_users_image_is_the_dockerfiles() -> None:
    """The user is the number that the image runs as, and the folder for the state is its own."""
    text = DOCKERFILE.read_text("utf-8")
    template = one(example("per-cluster"), "Deployment")["spec"]["template"]
    user = template["spec"]["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}\n" in text
    mounts = template["spec"]["containers"][0]["volumeMounts"]
    assert named(mounts, "state")["mountPath"] in text
    # Where the jar is that Strimzi's brokers read: test_strimzi.py has the path.
    assert "python3.11 -m venv --without-pip /opt/throttle-sidecar" in text
