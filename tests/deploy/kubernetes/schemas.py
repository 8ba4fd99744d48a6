"""JSON schemas of Kubernetes' resources, Strimzi's and the Prometheus operator's, all strict.

What an API server drops without a word, a field that there is not, is a mistake here.
"""

import asyncio
import json
import os
import subprocess
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
import kubernetes_validate
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from kafka_lab.jars import java
from tests.deploy.helm.rendered import Resource
from tests.support.maven import jars_of

KUBERNETES_VERSIONS = ("1.28", "1.37")
"""The oldest and the newest that the manifests are validated against."""

_POM = Path(__file__).with_name("pom.xml")
_GENERATOR = "io.strimzi.crdgenerator.CrdGenerator"
_ALTERNATIVES = ("anyOf", "oneOf", "allOf", "not")
"""Such parts name some of the fields only."""

_STRIMZI = {
    "Kafka": "io.strimzi.api.kafka.model.kafka.Kafka",
    "KafkaNodePool": "io.strimzi.api.kafka.model.nodepool.KafkaNodePool",
    "KafkaTopic": "io.strimzi.api.kafka.model.topic.KafkaTopic",
    "KafkaUser": "io.strimzi.api.kafka.model.user.KafkaUser",
}


def problems(resource: Resource) -> list[str]:
    """What is wrong with a resource, each by its place."""
    group, _, version = str(resource["apiVersion"]).rpartition("/")
    if group == "kafka.strimzi.io":
        return _unlike(_strimzi(resource["kind"], version), resource)
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
    words = ["javap", "-constants", "-cp", str(jar), f"{_STRIMZI['Kafka']}ClusterSpec"]
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
def _strimzi(kind: str, version: str) -> Resource:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "crd.yaml"
        words = [java(os.environ), "-cp", f"{_jars()}/*", _GENERATOR, "--yaml"]
        done = [*words, f"{_STRIMZI[kind]}={file}"]
        subprocess.run(done, capture_output=True, check=True, timeout=60)
        crd = yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
    (schema,) = (
        each["schema"]["openAPIV3Schema"]
        for each in crd["spec"]["versions"]
        if each["name"] == version
    )
    strict: Resource = _strict(schema)
    return strict


@cache
def _monitoring(kind: str) -> Resource:
    (jar,) = _jars().glob("openshift-model-monitoring-*.jar")
    with zipfile.ZipFile(jar) as archive:
        whole = json.loads(archive.read("schema/validation-schema.json"))
    definitions = {
        # An object for Java, with a text or a number in it.
        name: {"type": ["string", "integer"]} if name.endswith("_IntOrString") else schema
        for name, schema in whole["definitions"].items()
    }
    strict: Resource = _strict({**whole["resources"][kind.lower()], "definitions": definitions})
    return strict


def _strict(schema: Any) -> Any:
    """Allows no field but those that are named, and drops what is no JSON schema."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {
        key: value if key in _ALTERNATIVES else _strict(value)
        for key, value in schema.items()
        # Draft 3's, which the schemas from Java classes have.
        if not (key == "required" and isinstance(value, bool))
    }
    is_open = strict.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and not is_open:
        strict["additionalProperties"] = False
    return strict
