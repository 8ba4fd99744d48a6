"""The output of Kustomize for deploy/kubernetes, as values."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

ROOT = Path(__file__).parents[3]
KUBERNETES = ROOT / "deploy" / "kubernetes"
EXAMPLES = (
    "beside-broker",
    "per-cluster",
    "strimzi",
    "strimzi-authorizer",
    "strimzi-config-map",
)
OURS = "throttle-sidecar"

Resource = dict[str, Any]


@cache
def render(folder: Path) -> str:
    """Returns what is applied with a kustomization."""
    done = subprocess.run(
        [_kustomize(), "build", folder], capture_output=True, text=True, timeout=60, check=False
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def resources(folder: Path) -> list[Resource]:
    """Returns the same, as values that the caller may change."""
    return [each for each in yaml.load_all(render(folder), yaml.CSafeLoader) if each]


def example(name: str) -> list[Resource]:
    """Returns the resources of an example."""
    return resources(KUBERNETES / "examples" / name)


def one(found: list[Resource], kind: str, name: str | None = None) -> Resource:
    """The resource of a kind, which must be the only one, or the only one of a name."""
    (only,) = (
        each for each in found if each["kind"] == kind and name in {None, each["metadata"]["name"]}
    )
    return only


def pod_templates(found: list[Resource]) -> Iterator[Resource]:
    """The templates of the pods that a StatefulSet or a Deployment makes."""
    for each in found:
        if each["kind"] in {"StatefulSet", "Deployment"}:
            yield each["spec"]["template"]


def our_containers(template: Resource) -> list[Resource]:
    """The containers of our image in a pod, init containers too."""
    spec = template["spec"]
    every = [*spec.get("initContainers", []), *spec["containers"]]
    return [each for each in every if f"/{OURS}:" in each["image"]]


def environ(found: list[Resource]) -> dict[str, str]:
    """The environment of the sidecar's container, whose own variables win, as in Kubernetes."""
    (sidecar,) = (
        container
        for template in pod_templates(found)
        for container in our_containers(template)
        if container["args"] == ["run"]
    )
    variables: dict[str, str] = {}
    for each in sidecar["envFrom"]:
        variables |= one(found, "ConfigMap", each["configMapRef"]["name"])["data"]
    return variables | {each["name"]: each["value"] for each in sidecar.get("env", [])}


def named(values: list[Resource], name: str) -> Resource:
    """The container, the volume or the port of a name."""
    (only,) = (each for each in values if each["name"] == name)
    return only


def _kustomize() -> str:
    # The one that the Makefile builds is beside Python.
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which("kustomize", path=folders)
    assert found is not None, "kustomize is missing: make .venv/bin/kustomize"
    return found
