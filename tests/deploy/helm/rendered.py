"""The output of Helm for the chart, as values.

What brokers get is no resource of the chart's: the ConfigMap ``NAME-brokers`` has it as text.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy" / "helm" / "throttle-sidecar"
EXAMPLES = ROOT / "deploy" / "helm" / "examples"
OURS = "throttle-sidecar"
NAMESPACE = "kafka"

Resource = dict[str, Any]
Values = Mapping[str, Any]

LIMIT = {"limit": {"minAvailableRatio": 0.1}}
PER_CLUSTER: Values = {"bootstrapServers": "kafka-0.kafka:9092,kafka-1.kafka:9092", **LIMIT}
STRIMZI: Values = {"strimzi": {"cluster": "my-cluster"}, **LIMIT}
BESIDE_BROKER: Values = {
    "mode": "beside-broker",
    "bootstrapServers": "localhost:9092,kafka:9092",
    **LIMIT,
}
WAYS: Mapping[str, Values] = {
    "per-cluster": PER_CLUSTER,
    "strimzi": STRIMZI,
    "beside-broker": BESIDE_BROKER,
}


def merged(one: Values, other: Values) -> dict[str, Any]:
    """Both, where the second wins, as Helm does it with two files of values."""
    both = {**one, **other}
    for key in one.keys() & other.keys():
        if isinstance(one[key], dict) and isinstance(other[key], dict):
            both[key] = merged(one[key], other[key])
    return both


_MONITORED = {
    "monitoring": {"monitor": "PodMonitor", "rules": True, "dashboard": {"enabled": True}}
}
_SECURED = {
    "tls": {"enabled": True, "caSecret": {"name": "ca"}, "clientSecret": {"name": "client"}},
    "sasl": {"mechanism": "PLAIN", "username": "me", "secret": {"name": "login"}},
    "tokenSecret": {"name": "token"},
    "settingsSecret": "more",
    "imagePullSecrets": ["registry"],
}
_SEVERAL = {
    "replicas": 3,
    "state": {"volumeClaim": False},
    "podDisruptionBudget": {"enabled": True},
    "kubernetesEvents": True,
    "networkPolicy": {"enabled": True},
    "serviceAccount": {"annotations": {"a": "b"}},
    "priorityClassName": "high",
}
_ROOM = {
    "budgets": "[owners.etl]\nprefixes = ['etl.']\nhard = '200GB'\n",
    "relief": {"mode": "delete", "classes": "[[class]]\ntopics = ['logs']\nkeep_time = '1h'\n"},
    "callback": {"reserveBytes": 1 << 30},
}
FULL = {
    **WAYS,
    "per-cluster, full": merged(merged(PER_CLUSTER, _SECURED), {**_SEVERAL, **_MONITORED}),
    "per-cluster, client-quotas": merged(
        merged(PER_CLUSTER, merged(_SECURED, _ROOM)),
        {
            "enforcement": "client-quotas",
            "clientQuotaFloor": "1Mi",
            "state": {"existingClaim": "old"},
            "networkPolicy": {"enabled": True},
            "serviceAccount": {"annotations": {"a": "b"}},
            "podLabels": {"c": "d"},
        },
    ),
    "strimzi, full": merged(
        merged(STRIMZI, _ROOM),
        {
            "tokenSecret": {"name": "token"},
            "callback": {"authorizer": True},
            "networkPolicy": {"enabled": True},
            **_MONITORED,
        },
    ),
    "strimzi, scram": merged(
        STRIMZI,
        {
            "strimzi": {"authentication": "scram-sha-512", "apiVersion": "v1beta2"},
            "callback": {"jar": "configMap"},
        },
    ),
    "beside-broker, full": merged(
        merged(BESIDE_BROKER, merged(_SECURED, _ROOM)),
        {"besideBroker": {"service": True}, "monitoring": {"monitor": "ServiceMonitor"}},
    ),
}
"""Each way with little, and with much."""


class RefusedError(Exception):
    """Helm renders nothing, with what it prints."""


def helm(*words: str | Path, given: str = "", environ: Mapping[str, str] | None = None) -> str:
    """Run Helm; return what it prints, or raise RefusedError."""
    done = subprocess.run(
        [_helm(), *words],
        input=given,
        env={**os.environ, **(environ or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise RefusedError(done.stderr + done.stdout)
    return done.stdout


def render(values: Values, release: str = OURS) -> list[Resource]:
    """Return the resources of a release without its hooks, which the caller may change."""
    return [each for each in _rendered(values, release) if not _is_hook(each)]


def hooks(values: Values, release: str = OURS) -> list[Resource]:
    """Return what Helm creates when the release is removed."""
    return [each for each in _rendered(values, release) if _is_hook(each)]


def _is_hook(resource: Resource) -> bool:
    return "helm.sh/hook" in resource["metadata"].get("annotations", {})


def _rendered(values: Values, release: str) -> list[Resource]:
    return [each for each in yaml.load_all(_render(json.dumps(values), release), _Loader) if each]


@cache
def _render(values: str, release: str) -> str:
    words = ("template", release, CHART, "--namespace", NAMESPACE, "--values", "-")
    return helm(*words, given=values)


class _Loader(yaml.CSafeLoader):  # type: ignore[misc]  # as above
    """Refuses a key that is there twice, as Kubernetes does: YAML's loader takes the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key is there twice: {keys}"
        return super().construct_mapping(node, deep)


def one(found: list[Resource], kind: str, name: str | None = None) -> Resource:
    """The resource of a kind, which must be the only one, or the only one of a name."""
    (only,) = (
        each for each in found if each["kind"] == kind and name in {None, each["metadata"]["name"]}
    )
    return only


def settings_of(found: list[Resource]) -> dict[str, str]:
    """The variables in the ConfigMap of the settings."""
    (only,) = (each for each in found if each["kind"] == "ConfigMap" and _suffix(each) == "")
    return dict(only["data"])


def for_brokers(found: list[Resource]) -> dict[str, str]:
    """What is written down for brokers: name -> text."""
    (only,) = (each for each in found if _suffix(each) == "-brokers")
    return dict(only["data"])


def patch_of(found: list[Resource]) -> Resource:
    """The patch of the resource that makes the brokers' pods."""
    patch: Resource = yaml.load(for_brokers(found)["patch.yaml"], _Loader)
    return patch


def pod_of(found: list[Resource]) -> Resource:
    """The spec of the pod with the sidecar: of the Deployment, or of the patch beside brokers."""
    deployments = [each for each in found if each["kind"] == "Deployment"]
    (maker,) = deployments or [patch_of(found)]
    return dict(maker["spec"]["template"]["spec"])


def our_containers(pod: Resource) -> list[Resource]:
    """The containers of our image, init containers too."""
    every = [*pod.get("initContainers", []), *pod["containers"]]
    return [each for each in every if OURS in each.get("image", "")]


def sidecar_of(found: list[Resource]) -> Resource:
    """The container of the daemon."""
    return named(pod_of(found)["containers"], OURS)


def named(values: list[Resource], name: str) -> Resource:
    """The container, the volume or the port of a name."""
    (only,) = (each for each in values if each["name"] == name)
    return only


def leaves(schema: Resource, *path: str) -> Iterator[tuple[tuple[str, ...], Resource]]:
    """Each value of the chart with its path and its schema; an open map is one value."""
    for key, inner in schema["properties"].items():
        resolved = inner
        if "$ref" in inner:
            resolved = SCHEMA["definitions"][inner["$ref"].rpartition("/")[2]]
        if "properties" in resolved:
            yield from leaves(resolved, *path, key)
        else:
            yield (*path, key), resolved


def at(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Values with only one at a path."""
    for key in reversed(path):
        value = {key: value}
    return dict(value)


def _suffix(resource: Resource) -> str:
    """What a resource's name has after that of the release."""
    name = str(resource["metadata"]["name"])
    return next((end for end in ("-brokers", "-dashboard", "-files") if name.endswith(end)), "")


@cache
def _helm() -> str:
    # The one that the Makefile builds is beside Python.
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which("helm", path=folders)
    assert found is not None, "helm is missing: make .venv/bin/helm"
    return found


SCHEMA: Resource = json.loads((CHART / "values.schema.json").read_text("utf-8"))
DEFAULTS: Resource = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
