"""Helm takes the chart, and what it renders are resources that an API server takes."""

import json
import re

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from sidecar import __version__
from tests.deploy.helm.patched import patched
from tests.deploy.helm.rendered import (
    CHART,
    FULL,
    NAMESPACE,
    PER_CLUSTER,
    ROOT,
    STRIMZI,
    for_brokers,
    helm,
    hooks,
    merged,
    one,
    render,
    settings_of,
)
from tests.deploy.kubernetes.schemas import problems


@pytest.mark.parametrize(
    ("copy", "source"),
    [
        ("rules.yaml", "deploy/prometheus/rules/throttle-sidecar.yaml"),
        ("dashboard.json", "deploy/grafana/throttle-sidecar.json"),
    ],
)
def test_a_file_of_the_chart_is_a_copy(copy: str, source: str) -> None:
    """Helm reads no file outside of a chart, and some tools that package charts drop links."""
    assert (ROOT / source).read_bytes() == (CHART / "files" / copy).read_bytes(), "make chart-files"


def test_the_chart_has_all_rules() -> None:
    """There is one file of them to copy."""
    rules = sorted((ROOT / "deploy" / "prometheus" / "rules").iterdir())
    assert ["throttle-sidecar.yaml"] == [each.name for each in rules]


def test_the_chart_is_of_this_version() -> None:
    """The image's tag follows from it."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (__version__, __version__) == (chart["version"], chart["appVersion"])


@pytest.mark.helm
@pytest.mark.parametrize("name", FULL)
def test_helm_finds_nothing_to_complain_about(name: str) -> None:
    """It renders the notes, too."""
    words = ("lint", "--strict", CHART, "--namespace", NAMESPACE, "--values", "-")
    assert "0 chart(s) failed" in helm(*words, given=json.dumps(FULL[name]))


@pytest.mark.helm
def test_the_command_of_the_readme_renders() -> None:
    """An address and a limit are enough."""
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    (command,) = re.findall(r"helm install throttle-sidecar (deploy/\S+) (--set [^`]*)`", text)
    folder, options = command
    assert CHART == ROOT / folder
    text = helm("template", "throttle-sidecar", CHART, *options.split())
    found = [each for each in yaml.safe_load_all(text) if each]
    assert one(found, "Deployment")
    limit = settings_of(found)["SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO"]
    assert "0.1" == limit


@pytest.mark.helm
@pytest.mark.parametrize("name", FULL)
def test_every_resource_is_of_its_schema(name: str) -> None:
    """It is Kubernetes' of the oldest and the newest version, Strimzi's or Prometheus'."""
    found = render(FULL[name]) + hooks(FULL[name])
    wrong = {f"{each['kind']}: {problem}" for each in found for problem in problems(each)}
    assert set() == wrong


MISTAKES = {
    "Deployment": ("spec", "template", "spec", "hostUsrs"),
    "Job": ("spec", "template", "spec", "hostUsrs"),
    "Service": ("spec", "prots"),
    "NetworkPolicy": ("spec", "engress"),
    "PodDisruptionBudget": ("spec", "maxUnavailble"),
    "PersistentVolumeClaim": ("spec", "acessModes"),
    "KafkaUser": ("spec", "authorization", "acl"),
    "PodMonitor": ("spec", "podMetricsEndpoint"),
    "ServiceMonitor": ("spec", "endpoint"),
    "PrometheusRule": ("spec", "rules"),
}


@pytest.mark.helm
@pytest.mark.parametrize("kind", MISTAKES)
def test_a_field_that_there_is_not_is_found(kind: str) -> None:
    """It is in each kind, so that none is compared with a schema that takes all."""
    wrong = next(
        each for way in FULL.values() for each in render(way) + hooks(way) if each["kind"] == kind
    )
    assert [] == problems(wrong)
    *folders, field = MISTAKES[kind]
    inner = wrong
    for folder in folders:
        inner = inner[folder]
    inner[field] = {}
    assert any(field in found for found in problems(wrong)), problems(wrong)


@pytest.mark.helm
@pytest.mark.parametrize(
    ("version", "releases"),
    [("v1", {"Strimzi 0.51", "Strimzi 1.2"}), ("v1beta2", {"Strimzi 0.51"})],
)
def test_each_strimzi_that_has_the_version_is_asked(version: str, releases: set[str]) -> None:
    """The newest no longer has the older version."""
    wrong = one(render(merged(STRIMZI, {"strimzi": {"apiVersion": version}})), "KafkaUser")
    wrong["spec"]["qoutas"] = {}
    assert releases == {each.partition(":")[0] for each in problems(wrong)}


@pytest.mark.helm
def test_a_field_of_kafka_that_there_is_not_is_found() -> None:
    """So a patch that Strimzi would drop is a mistake."""
    wrong = patched(render(STRIMZI))
    wrong["spec"]["kafka"]["conifg"] = {}
    assert any("conifg" in found for found in problems(wrong))


@pytest.mark.helm
@pytest.mark.parametrize("name", [name for name in FULL if not name.startswith("per-cluster")])
def test_what_is_patched_is_of_its_schema(name: str) -> None:
    """The example with the patch is a resource that an API server takes."""
    assert [] == problems(patched(render(FULL[name])))


@pytest.mark.helm
def test_two_releases_share_nothing() -> None:
    """Each resource has the name of its release, and each selector selects its own pods."""
    both = [render(PER_CLUSTER, release) for release in ("one", "throttle-sidecar-two")]
    names = [{(each["kind"], each["metadata"]["name"]) for each in found} for found in both]
    assert not names[0] & names[1]
    assert {"one-throttle-sidecar"} <= {name for _, name in names[0]}
    selectors = [one(found, "Service")["spec"]["selector"] for found in both]
    labels = [one(found, "Deployment")["spec"]["template"]["metadata"]["labels"] for found in both]
    assert selectors[0].items() <= labels[0].items()
    assert not selectors[0].items() <= labels[1].items()


@pytest.mark.helm
@pytest.mark.parametrize("release", ["throttle-sidecar-0.1.0", "kafka.eu"])
def test_a_release_may_have_a_dot(release: str) -> None:
    """The name of a Service may not, nor the host in the address that brokers read."""
    found = render(PER_CLUSTER, release)
    name = one(found, "Service")["metadata"]["name"]
    assert re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert f"//{name}.{NAMESPACE}.svc:" in for_brokers(found)["broker.properties"]
