"""Patches of resources, applied as kubectl applies them."""

import copy
from typing import Any

import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from tests.deploy.helm.rendered import EXAMPLES, Resource, for_brokers, one, patch_of

_MERGED_BY = {"volumeMounts": "mountPath", "ports": "containerPort"}
"""A list -> the key of its items, by Kubernetes' schemas; of any other list it is the name."""


def example(kind: str) -> Resource:
    """The resource of the example brokers that a patch is for: StatefulSet or Kafka."""
    name = {"StatefulSet": "stateful-set", "Kafka": "strimzi"}[kind]
    text = (EXAMPLES / f"{name}.yaml").read_text("utf-8")
    return one(list(yaml.safe_load_all(text)), kind)


def patched(found: list[Resource]) -> Resource:
    """That resource with all that the chart has for it."""
    patch = patch_of(found)
    if patch["kind"] == "StatefulSet":
        return strategic(example("StatefulSet"), patch)
    operations = yaml.safe_load(for_brokers(found).get("authorizer.yaml", "[]"))
    return json_patch(merge(example("Kafka"), patch), operations)


def strategic(resource: Resource, patch: Resource) -> Resource:
    """Apply a strategic merge patch to a resource of Kubernetes: items of lists are merged."""
    both = copy.deepcopy(resource)
    for key, value in patch.items():
        before = both.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            both[key] = strategic(before, value)
        elif isinstance(value, list) and isinstance(before, list) and _are_objects(value):
            both[key] = _items(before, value, _MERGED_BY.get(key, "name"))
        else:
            both[key] = copy.deepcopy(value)
    return both


def _are_objects(values: list[Any]) -> bool:
    return all(isinstance(each, dict) for each in values)


def _items(before: list[Resource], patch: list[Resource], by: str) -> list[Resource]:
    """The patch's items come first, as in the API server (tests/deploy/kubernetes)."""
    others = {each[by]: each for each in before}
    changed = [strategic(others.pop(each[by], {}), each) for each in patch]
    return changed + list(others.values())


def merge(resource: Resource, patch: Resource) -> Resource:
    """Apply a merge patch (RFC 7396) to a custom resource: lists are replaced, null deletes."""
    both = copy.deepcopy(resource)
    for key, value in patch.items():
        if value is None:
            both.pop(key, None)
        elif isinstance(value, dict):
            before = both.get(key)
            both[key] = merge(before if isinstance(before, dict) else {}, value)
        else:
            both[key] = copy.deepcopy(value)
    return both


def json_patch(resource: Resource, operations: list[Resource]) -> Resource:
    """Apply "test", "replace" and "add" of RFC 6902; AssertionError if a test fails."""
    both = copy.deepcopy(resource)
    for each in operations:
        *parents, last = each["path"].split("/")[1:]
        inner: Resource = both
        for part in parents:
            assert part in inner, f"there is no {each['path']}"
            inner = inner[part]
        if each["op"] == "test":
            assert each["value"] == inner.get(last), f"{each['path']} is {inner.get(last)}"
        else:
            assert each["op"] == "add" or last in inner
            inner[last] = each["value"]
    return both
