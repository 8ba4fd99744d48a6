"""The chart under another version, and as a part of another chart."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from tests.deploy.helm.rendered import (
    CHART,
    FULL,
    NAMESPACE,
    OURS,
    PER_CLUSTER,
    Resource,
    Values,
    helm,
    merged,
    one,
    render,
)

pytestmark = pytest.mark.helm

LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
"""What Kubernetes takes as the value of a label, up to 63 characters."""

NAME = re.compile("[a-z][-a-z0-9]{0,61}[a-z0-9]")
"""What Kubernetes takes as the name of a Service or a Job."""


def rendered(chart: Path, values: Values, release: str = OURS) -> list[Resource]:
    """The resources of a chart in a folder, and its hooks."""
    words = ("template", release, chart, "--namespace", NAMESPACE, "--values", "-")
    return [each for each in yaml.safe_load_all(helm(*words, given=json.dumps(values))) if each]


def of_version(version: str, folder: Path) -> Path:
    """The chart as Flux packages it of a commit, with another version."""
    chart = folder / OURS
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text("utf-8"))
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about | {"version": version}))
    return chart


def part_of(folder: Path, *aliases: str) -> Path:
    """A chart that has the chart as a part by each alias, on a condition."""
    shutil.copytree(CHART, folder / "charts" / OURS)
    parts = [
        {"name": OURS, "version": "0.1.0", "condition": f"{alias}.enabled", "alias": alias}
        for alias in aliases
    ]
    about = {"apiVersion": "v2", "name": "kafka", "version": "1.0.0", "dependencies": parts}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(about))
    return folder


def labels_in(found: Any) -> list[str]:
    """The values of all labels, also of those in selectors and templates."""
    if isinstance(found, list):
        return [label for each in found for label in labels_in(each)]
    if not isinstance(found, dict):
        return []
    own = [value for key in ("labels", "matchLabels") for value in found.get(key, {}).values()]
    return own + [label for each in found.values() for label in labels_in(each)]


def test_the_version_of_a_commit_makes_labels(tmp_path: Path) -> None:
    """Flux adds it after a plus sign, which no label may have."""
    found = rendered(of_version("0.1.0+ab12cd34.5", tmp_path), FULL["per-cluster, client-quotas"])
    labels = labels_in(found)
    assert "throttle-sidecar-0.1.0_ab12cd34.5" in labels
    assert [] == [each for each in labels if not LABEL.fullmatch(each) or len(each) > 63]


def test_a_version_alone_replaces_no_pod(tmp_path: Path) -> None:
    """With an image of one's own, a chart that differs in its rules alone restarts nothing."""
    newer = rendered(of_version("0.1.1", tmp_path), PER_CLUSTER)
    before = one(render(PER_CLUSTER), "Deployment")["spec"]["template"]
    assert before == one(newer, "Deployment")["spec"]["template"]


def test_a_chart_that_has_it_as_a_part_switches_it(tmp_path: Path) -> None:
    """Helm hands the condition's value on to the part, whose schema has to take it."""
    whole = part_of(tmp_path, OURS)
    for enabled in (True, False):
        found = rendered(whole, {OURS: merged(PER_CLUSTER, {"enabled": enabled})})
        assert enabled == any(each["kind"] == "Deployment" for each in found)


@pytest.mark.parametrize(
    "alias", ["throttle-sidecar-of-the-payments-cluster", "throttleSidecarOfPayments"]
)
def test_any_alias_makes_names_that_kubernetes_takes(tmp_path: Path, alias: str) -> None:
    """Helm calls the chart by its alias; the hooks are found by it, too."""
    values = merged(FULL["per-cluster, client-quotas"], {"monitoring": {"monitor": "PodMonitor"}})
    whole = part_of(tmp_path, alias)
    found = rendered(whole, {alias: values}, release="production-of-the-platform-team")
    assert "Job" in {each["kind"] for each in found}
    names = [each["metadata"]["name"] for each in found]
    assert [] == [each for each in names if not NAME.fullmatch(each)]


def test_two_parts_of_a_chart_are_two_clusters(tmp_path: Path) -> None:
    """Each Service beside brokers selects its own, and the rules tell the clusters apart."""
    own = dict.fromkeys(("throttle-sidecar-a", "throttle-sidecar-b"), FULL["beside-broker, full"])
    found = rendered(part_of(tmp_path, *own), own)
    patches = [each["data"]["patch.yaml"] for each in found if "patch.yaml" in each.get("data", {})]
    pods = [yaml.safe_load(each)["spec"]["template"]["metadata"]["labels"] for each in patches]
    selectors = [each["spec"]["selector"] for each in found if each["kind"] == "Service"]
    assert (2, 4) == (len(pods), len(selectors))
    for selector in selectors:
        assert 1 == sum(selector.items() <= labels.items() for labels in pods)
    monitors = [each["spec"]["endpoints"] for each in found if each["kind"] == "ServiceMonitor"]
    clusters = [endpoint["relabelings"][0]["replacement"] for (endpoint,) in monitors]
    assert [f"{NAMESPACE}/{OURS}-{each}" for each in "ab"] == sorted(clusters)
