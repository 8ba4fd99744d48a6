"""The patches that the status page prints for Strimzi make resources that its CRDs take."""

import json
import shlex
from typing import Any

import pytest

from sidecar.status.strimzi import Pod, growth, retention_patch
from sidecar.volumes import Volume
from tests.deploy.helm.rendered import ROOT, Resource
from tests.deploy.kubernetes.schemas import problems

pytestmark = pytest.mark.helm  # the schemas need Java and Maven, as those of the chart's tests

CLAIM = {"type": "persistent-claim", "size": "100Gi", "class": "fast"}


def resource(kind: str, spec: dict[str, Any]) -> Resource:
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": kind,
        "metadata": {"name": "x", "labels": {"strimzi.io/cluster": "prod"}},
        "spec": spec,
    }


def pool(storage: dict[str, Any]) -> Resource:
    return resource("KafkaNodePool", {"replicas": 3, "roles": ["broker"], "storage": storage})


def patched(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Applies "test" and "replace" of RFC 6902."""
    for each in operations:
        *parents, last = each["path"].split("/")[1:]
        at = document
        for part in parents:
            at = at[int(part)] if isinstance(at, list) else at[part]
        if each["op"] == "test":
            assert each["value"] == at[last]
        else:
            assert ("replace", True) == (each["op"], last in at)
            at[last] = each["value"]
    return document


@pytest.mark.parametrize(
    ("log_dir", "storage"),
    [
        ("/var/lib/kafka/data/kafka-log2", {**CLAIM}),
        (
            "/var/lib/kafka/data-1/kafka-log2",
            {"type": "jbod", "volumes": [{**CLAIM, "id": 0}, {**CLAIM, "id": 1}]},
        ),
    ],
    ids=["single", "jbod"],
)
def test_a_node_pool_takes_the_new_size(log_dir: str, storage: dict[str, Any]) -> None:
    """Only the size of that volume has changed."""
    before = pool(storage)
    assert [] == problems(before)
    command = growth(Volume(2, log_dir, 100 << 30, 5), Pod())
    after = patched(json.loads(json.dumps(before)), json.loads(shlex.split(command.lines[1])[9]))
    assert [] == problems(after)
    text = json.dumps(after)
    assert 1 == text.count("150Gi")
    assert json.dumps(before) == text.replace("150Gi", "100Gi")


def test_a_topic_takes_the_new_retention() -> None:
    """A patch may add it, where spec.config may have anything."""
    topic = resource("KafkaTopic", {"partitions": 3, **retention_patch(20)["spec"]})
    assert [] == problems(topic)
    assert problems(resource("KafkaTopic", {"partitions": 3, "configs": {}}))


def patches() -> list[tuple[str, str]]:
    """The kind and the patch of each "kubectl patch" in the runbooks."""
    lines = [
        shlex.split(line)
        for file in sorted((ROOT / "docs" / "runbooks").glob("*.md"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith("kubectl patch")
    ]
    return [(words[2], words[-1]) for words in lines]


@pytest.mark.parametrize(("kind", "patch"), patches())
def test_the_patches_of_the_runbooks(kind: str, patch: str) -> None:
    """Each makes a resource that its CRD takes."""
    storage = {"type": "jbod", "volumes": [{**CLAIM, "id": 0}]}
    if kind == "kafkanodepool":
        changed = patched(pool(storage), json.loads(patch))
    else:
        named = {"kafkatopic": "KafkaTopic", "kafkauser": "KafkaUser"}[kind]
        changed = resource(named, json.loads(patch)["spec"])
    assert [] == problems(changed)


def test_the_runbooks_patch_each_kind() -> None:
    """None of them has gone."""
    assert {"kafkanodepool", "kafkatopic", "kafkauser"} == {kind for kind, _ in patches()}
