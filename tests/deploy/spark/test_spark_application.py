"""The manifest says what the operator, the image and the command understand."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from sidecar.cli import group

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "deploy" / "spark" / "Dockerfile").read_text(encoding="utf-8")
POD = {
    "cores": int,
    "memory": str,
    "memoryOverhead": str,
    "serviceAccount": str,
    "podSecurityContext": {"fsGroup": int, "runAsNonRoot": bool},
    "securityContext": {"allowPrivilegeEscalation": bool},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
}
MANIFEST = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str},
    "spec": {
        "schedule": str,
        "concurrencyPolicy": str,
        "template": {
            "type": str,
            "mode": str,
            "sparkVersion": str,
            "image": str,
            "mainApplicationFile": str,
            "arguments": [str],
            "restartPolicy": {
                "type": str,
                "onFailureRetries": int,
                "onFailureRetryInterval": int,
            },
            "volumes": [
                {"name": str, "persistentVolumeClaim": {"claimName": str, "readOnly": bool}}
            ],
            "driver": POD,
            "executor": {**POD, "instances": int},
        },
    },
}
"""Fields and their types, of those that kubeflow/spark-operator has in api/v1beta2."""


@pytest.fixture(scope="module")
def manifest() -> Any:
    return yaml.safe_load((ROOT / "deploy/spark/spark-application.yaml").read_text("utf-8"))


def unlike(found: object, kind: Any, at: str = "") -> list[str]:
    """Where a document is not of a type."""
    if isinstance(kind, dict) and isinstance(found, dict):
        return [
            place
            for name, value in found.items()
            for place in (
                unlike(value, kind[name], f"{at}.{name}") if name in kind else [f"{at}.{name}"]
            )
        ]
    if isinstance(kind, list) and isinstance(found, list):
        return [place for each in found for place in unlike(each, kind[0], f"{at}[]")]
    return [] if isinstance(kind, type) and type(found) is kind else [at]


def test_each_field_is_the_operators(manifest: Any) -> None:
    """Its name and its type are: numbers where it has numbers, text where it has text."""
    assert [] == unlike(manifest, MANIFEST)
    assert "sparkoperator.k8s.io/v1beta2" == manifest["apiVersion"]
    assert "ScheduledSparkApplication" == manifest["kind"]
    assert "Forbid" == manifest["spec"]["concurrencyPolicy"]
    template = manifest["spec"]["template"]
    assert ("Python", "cluster") == (template["type"], template["mode"])
    assert "OnFailure" == template["restartPolicy"]["type"]


def test_the_arguments_are_the_commands(manifest: Any) -> None:
    """Each path lies in what both driver and executors mount; the tables can be written."""
    template = manifest["spec"]["template"]
    name, stage, *arguments = template["arguments"]
    context = click.Context(group)
    pipeline = group.get_command(context, name)
    assert isinstance(pipeline, click.Group)
    command = pipeline.get_command(context, stage)
    assert command is not None
    options, values, _ = command.make_parser(context).parse_args(list(arguments))
    assert [] == values
    assert len(arguments) == 2 * len(options)
    for pod in ("driver", "executor"):
        mounts = template[pod]["volumeMounts"]
        writable = [each["mountPath"] for each in mounts if not each.get("readOnly")]
        readable = [each["mountPath"] for each in mounts]
        for option, path in options.items():
            folders = writable if option in ("out", "plan") else readable
            assert any(Path(path).is_relative_to(folder) for folder in folders), path
        assert {each["name"] for each in mounts} == {each["name"] for each in template["volumes"]}


def test_request_logs_have_a_folder_of_their_own(manifest: Any) -> None:
    """Any file in it is read as a request log."""
    arguments = manifest["spec"]["template"]["arguments"]
    logs = arguments[arguments.index("--request-logs") + 1]
    assert [logs] == [each for each in arguments if each.startswith(logs)]


def test_the_image_has_what_is_started(manifest: Any) -> None:
    """It has the file and its user, and the Spark that the pipeline is made for."""
    template = manifest["spec"]["template"]
    copy = r"^COPY (?!--from)(?:--chmod=[0-9]+ )?(.*) (\S+)$"
    copied = re.findall(copy, DOCKERFILE, re.MULTILINE)
    files = {
        f"{target}{Path(source).name}" for sources, target in copied for source in sources.split()
    }
    assert template["mainApplicationFile"].removeprefix("local://") in files
    assert [] == [
        source
        for sources, _ in copied
        for source in sources.split()
        if not (ROOT / source).exists()
    ]
    user = template["driver"]["podSecurityContext"]["fsGroup"]
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == [str(user)]
    assert f'"pyspark=={template["sparkVersion"]}"' in (
        ROOT / "usage_pipeline/pyproject.toml"
    ).read_text("utf-8")
