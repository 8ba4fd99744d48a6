"""The Prometheus operator finds every sidecar and has our rules; Grafana has the dashboard."""

import json

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from sidecar.settings.values import RUNBOOKS_URL
from tests.deploy.helm.rendered import (
    BESIDE_BROKER,
    NAMESPACE,
    OURS,
    PER_CLUSTER,
    ROOT,
    STRIMZI,
    WAYS,
    Resource,
    merged,
    named,
    one,
    patch_of,
    render,
    sidecar_of,
)

pytestmark = pytest.mark.helm

RULES = ROOT / "deploy" / "prometheus" / "rules" / "throttle-sidecar.yaml"


def labels_of(found: list[Resource]) -> dict[str, str]:
    """The labels of a pod with a sidecar."""
    deployments = [each for each in found if each["kind"] == "Deployment"]
    (maker,) = deployments or [patch_of(found)]
    return dict(maker["spec"]["template"]["metadata"]["labels"])


@pytest.mark.parametrize("name", WAYS)
def test_a_pod_monitor_finds_every_sidecar(name: str) -> None:
    """The pod has the label and the port."""
    found = render(merged(WAYS[name], {"monitoring": {"monitor": "PodMonitor"}}))
    monitor = one(found, "PodMonitor")["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert "/metrics" == endpoint["path"]
    assert monitor["selector"]["matchLabels"].items() <= labels_of(found).items()
    assert 7071 == named(sidecar_of(found)["ports"], endpoint["port"])["containerPort"]


@pytest.mark.parametrize("name", WAYS)
def test_a_service_monitor_finds_every_sidecar(name: str) -> None:
    """Its Service has the metrics alone, of ready pods and of others."""
    found = render(merged(WAYS[name], {"monitoring": {"monitor": "ServiceMonitor"}}))
    monitor = one(found, "ServiceMonitor")["spec"]
    wanted = monitor["selector"]["matchLabels"].items()
    services = [each for each in found if each["kind"] == "Service"]
    (service,) = (each for each in services if wanted <= each["metadata"]["labels"].items())
    assert service["spec"]["selector"].items() <= labels_of(found).items()
    assert service["spec"]["publishNotReadyAddresses"]
    (port,) = service["spec"]["ports"]
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] == port["name"]
    assert 7071 == named(sidecar_of(found)["ports"], port["targetPort"])["containerPort"]


def test_a_service_monitor_needs_no_label_that_argo_cd_replaces() -> None:
    """Argo CD writes the name of its application over the name of the release."""
    monitored = merged(PER_CLUSTER, {"monitoring": {"monitor": "ServiceMonitor"}})
    both = {release: render(monitored, release) for release in (OURS, f"{OURS}-two")}
    for release, found in both.items():
        wanted = one(found, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
        for other, those in both.items():
            labels = [each["metadata"]["labels"] for each in those if each["kind"] == "Service"]
            as_argo = [each | {"app.kubernetes.io/instance": "app"} for each in labels]
            matched = [each for each in as_argo if wanted.items() <= each.items()]
            assert (1 if release == other else 0) == len(matched)


def test_labels_of_ones_own_are_there_once() -> None:
    """Flux refuses a key that is there twice, and the last one is what is meant."""
    own = {"app.kubernetes.io/instance": "prometheus"}
    monitoring = {"rules": True, "labels": own, "dashboard": {"enabled": True, "labels": own}}
    found = render(merged(PER_CLUSTER, {"monitoring": {"monitor": "PodMonitor", **monitoring}}))
    for each in (one(found, "PodMonitor"), one(found, "PrometheusRule")):
        assert own.items() <= each["metadata"]["labels"].items()
    dashboard = one(found, "ConfigMap", "throttle-sidecar-dashboard")
    assert own.items() <= dashboard["metadata"]["labels"].items()


def test_the_rules_tell_clusters_apart() -> None:
    """Two clusters of Strimzi's in a namespace are two, and so are those of two releases."""
    for values, release, expected in (
        (BESIDE_BROKER, OURS, NAMESPACE),
        (BESIDE_BROKER, "blue", f"{NAMESPACE}/blue"),
        (PER_CLUSTER, "green", f"{NAMESPACE}/green"),
        (STRIMZI, OURS, f"{NAMESPACE}/my-cluster"),
        (STRIMZI, "green", f"{NAMESPACE}/my-cluster"),
    ):
        found = render(merged(values, {"monitoring": {"monitor": "PodMonitor"}}), release)
        (endpoint,) = one(found, "PodMonitor")["spec"]["podMetricsEndpoints"]
        # With the action that the CRD has as its default: Argo CD would see a difference forever.
        relabeling = {"action": "replace", "targetLabel": "cluster", "replacement": expected}
        assert [relabeling] == endpoint["relabelings"]


def test_prometheus_may_have_the_ca_from_elsewhere() -> None:
    """A ConfigMap or a file takes the place of the Secret: the operator takes one of them alone."""
    own = {"configMap": {"name": "corp-ca", "key": "ca.crt"}}
    for ca, expected in (
        (own, own),
        ({"secret": {"name": "mine"}}, {"secret": {"name": "mine", "key": "ca.crt"}}),
        ({}, {"secret": {"name": "api-tls", "key": "ca.crt"}}),
    ):
        monitoring = {"monitor": "PodMonitor", "tlsConfig": {"ca": ca}}
        values = {"apiTls": {"secret": {"name": "api-tls"}}, "monitoring": monitoring}
        monitor = one(render(merged(PER_CLUSTER, values)), "PodMonitor")["spec"]
        (endpoint,) = monitor["podMetricsEndpoints"]
        assert expected == endpoint["tlsConfig"]["ca"]
    of_file = {"monitor": "ServiceMonitor", "tlsConfig": {"caFile": "/etc/prometheus/ca.crt"}}
    values = {"apiTls": {"secret": {"name": "api-tls"}}, "monitoring": of_file}
    monitor = one(render(merged(PER_CLUSTER, values)), "ServiceMonitor")["spec"]
    assert "ca" not in monitor["endpoints"][0]["tlsConfig"]


def test_the_job_is_one_that_the_rules_know() -> None:
    """It is the namespace and the name of the monitor."""
    rules = RULES.read_text("utf-8")
    assert 'up{job=~".*throttle-sidecar.*"} == 0' in rules
    found = render(merged(PER_CLUSTER, {"monitoring": {"monitor": "PodMonitor"}}), "prod")
    assert "throttle-sidecar" in one(found, "PodMonitor")["metadata"]["name"]


def test_the_rules_are_those_of_prometheus() -> None:
    """They are the same, group by group."""
    found = render(merged(PER_CLUSTER, {"monitoring": {"rules": True}}))
    expected = yaml.safe_load(RULES.read_text("utf-8"))
    assert expected == one(found, "PrometheusRule")["spec"]


def test_alerts_link_to_the_runbooks_of_the_values() -> None:
    """Also when no sidecar reports its own address of runbooks."""
    values = {"monitoring": {"rules": True, "runbooksUrl": "https://example.org/runbooks"}}
    rule = json.dumps(one(render(merged(PER_CLUSTER, values)), "PrometheusRule"))
    text = RULES.read_text("utf-8")
    assert RUNBOOKS_URL not in rule
    assert text.count(RUNBOOKS_URL) == rule.count("https://example.org/runbooks/")


def test_the_dashboard_is_that_of_grafana() -> None:
    """It is a file in a ConfigMap that Grafana finds by a label."""
    found = render(merged(PER_CLUSTER, {"monitoring": {"dashboard": {"enabled": True}}}))
    dashboard = one(found, "ConfigMap", "throttle-sidecar-dashboard")
    assert "1" == dashboard["metadata"]["labels"]["grafana_dashboard"]
    expected = (ROOT / "deploy" / "grafana" / "throttle-sidecar.json").read_text("utf-8")
    assert json.loads(expected) == json.loads(dashboard["data"]["throttle-sidecar.json"])
