"""The Prometheus operator finds every sidecar and has our rules."""

import subprocess
import sys

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from tests.deploy.kubernetes.rendered import (
    EXAMPLES,
    KUBERNETES,
    ROOT,
    example,
    named,
    one,
    our_containers,
    pod_templates,
)


def test_the_rules_are_those_of_prometheus() -> None:
    """The file is as make kubernetes-rules writes it, group by group."""
    file = KUBERNETES / "monitoring" / "prometheus-rule.yaml"
    tool = ROOT / "tools" / "prometheus_rule.py"
    output = subprocess.run(
        [sys.executable, tool], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert output == file.read_text("utf-8"), "make kubernetes-rules"
    groups = [
        group
        for each in sorted((ROOT / "deploy" / "prometheus" / "rules").glob("*.yaml"))
        for group in yaml.safe_load(each.read_text("utf-8"))["groups"]
    ]
    assert groups == yaml.safe_load(output)["spec"]["groups"]


@pytest.mark.kustomize
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_sidecar_is_scraped(name: str) -> None:
    """Its pod has the label and the port."""
    found = example(name)
    monitor = one(found, "PodMonitor")["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert "/metrics" == endpoint["path"]
    seen = [
        named(container["ports"], endpoint["port"])
        for template in pod_templates(found)
        if monitor["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        for container in our_containers(template)
        if "ports" in container
    ]
    assert 1 == len(seen)
