"""A real API server takes what the chart has: installed, upgraded, patched and removed by Helm."""

import asyncio
import itertools
import shutil
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from tests.deploy.helm.patched import example, patched
from tests.deploy.helm.rendered import (
    CHART,
    EXAMPLES,
    FULL,
    OURS,
    PER_CLUSTER,
    Resource,
    Values,
    at,
    for_brokers,
    hooks,
    merged,
    named,
    one,
    our_containers,
    patch_of,
    render,
)
from tests.deploy.kubernetes.api_server import ApiServer, NotTakenError, api_server
from tests.deploy.kubernetes.schemas import STRIMZI_KINDS, monitoring_crd, strimzi_crd
from tests.support.first_throttle import table_row

# Before its first test the server starts, and has its CRDs.
pytestmark = [pytest.mark.helm, pytest.mark.timeout(400)]

NUMBERS = itertools.count(1)
"""Of namespaces, which nothing here can remove."""
OLDER = Path(__file__).parents[1] / "helm" / "older-values.yaml"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
PATCHED = [name for name in FULL if not name.startswith("per-cluster")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiServer]:
    async with api_server(tmp_path_factory.mktemp("kubernetes")) as server:
        for kind in ("PodMonitor", "ServiceMonitor", "PrometheusRule"):
            await server.define(monitoring_crd(kind))
        for crd in await strimzi_crds("0.51"):
            await server.define(crd)
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
        server.create({**priority, "metadata": {"name": "high"}})
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def newest(kubernetes: ApiServer) -> ApiServer:
    """The same with Strimzi's newest CRDs, for the last tests of this file."""
    for crd in await strimzi_crds("0.51"):
        await kubernetes.remove(crd)
    for crd in await strimzi_crds("1.2"):
        await kubernetes.define(crd)
    return kubernetes


async def strimzi_crds(release: str) -> list[Resource]:
    """In a thread, which may have a loop of its own for Maven."""
    return await asyncio.to_thread(lambda: [strimzi_crd(kind, release) for kind in STRIMZI_KINDS])


@pytest.fixture
def namespace(kubernetes: ApiServer) -> str:
    """A new one, which admits restricted pods alone, with what a controller gives each."""
    name = f"kafka-{next(NUMBERS)}"
    kubernetes.create(resource("Namespace", name, labels=RESTRICTED))
    kubernetes.create(resource("ServiceAccount", "default"), name)
    return name


def resource(kind: str, name: str, labels: dict[str, str] | None = None, **more: Any) -> Resource:
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


Release = Callable[..., str]


@pytest.fixture
def release(kubernetes: ApiServer, namespace: str) -> Release:
    """Runs a command of Helm for the release of that namespace."""
    return partial(kubernetes.helm, namespace)


def manifest(release: Release) -> list[Resource]:
    """The resources that Helm says it has installed."""
    return [each for each in yaml.safe_load_all(release("get manifest")) if each]


CHANGED: Values = {
    "image": {"tag": "0.2.0"},
    "throttle": {"mode": "observe"},
    "resources": {"limits": {"memory": "512Mi"}},
    "podSecurityContext": {"fsGroup": 1000},
    "settings": {"SIDECAR_STORAGE_CHECK_INTERVAL": "PT30S"},
}


@pytest.mark.parametrize("name", FULL)
def test_helm_installs_upgrades_and_removes_it(
    kubernetes: ApiServer, namespace: str, release: Release, name: str
) -> None:
    """Each field is one of the server's; a removed release leaves nothing, not even its state."""
    assert_it_lives(kubernetes, namespace, release, FULL[name])


@pytest.mark.parametrize("row", ["Kubernetes", "Strimzi"])
def test_the_commands_of_the_readme_install_it(
    kubernetes: ApiServer, namespace: str, release: Release, row: str
) -> None:
    """Strimzi's row names the value that replaces another one in the row above."""
    options = table_row("Kubernetes")[0].split()[4:]
    if row == "Strimzi":
        at_address = next(i for i, each in enumerate(options) if "bootstrapServers" in each)
        options[at_address] = table_row(row)[0].split()[1]
    release("install", CHART, *options)
    assert kubernetes.get("apps/v1", "Deployment", OURS, namespace)


def assert_it_lives(
    kubernetes: ApiServer, namespace: str, release: Release, values: Values
) -> None:
    before = kubernetes.inventory(namespace)
    assert "kind:" in release("install", CHART, "--dry-run=server", values=values)
    assert before == kubernetes.inventory(namespace)
    for each in render(values) + hooks(values):
        kubernetes.create(each, namespace, dry_run=True)
    release("install", CHART, values=values)
    installed = {f"{each['kind']}/{each['metadata']['name']}" for each in manifest(release)}
    secret = f"Secret/sh.helm.release.v1.{OURS}.v1"
    assert before | installed | {secret} == kubernetes.inventory(namespace)
    release("upgrade", CHART, values=merged(values, CHANGED))
    for each in manifest(release):
        name = each["metadata"]["name"]
        there = kubernetes.get(each["apiVersion"], each["kind"], name, namespace)
        assert contains(there, each), f"{each['kind']} {name} is not what the chart has"
    # Nothing here runs the Job of a hook: tests/integration/test_kubernetes_pods.py does.
    release("uninstall", *(["--no-hooks"] if hooks(values) else []))
    assert before == kubernetes.inventory(namespace)


def contains(there: Any, wanted: Any) -> bool:
    """Whether the server has all that was sent, besides its defaults."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        # What is null is not stored.
        kept = {key: value for key, value in wanted.items() if value is not None}
        return all(contains(there.get(key), value) for key, value in kept.items())
    if isinstance(wanted, list) and isinstance(there, list):
        return len(there) == len(wanted) and all(map(contains, there, wanted))
    return bool(there == wanted)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [("per-cluster", "per-cluster, full"), ("beside-broker", "beside-broker, full")],
)
def test_what_is_switched_on_can_be_switched_off(
    kubernetes: ApiServer, namespace: str, release: Release, smaller: str, larger: str
) -> None:
    """An upgrade may change the strategy and the replicas, and removes what is no longer there."""
    release("install", CHART, values=FULL[smaller])
    few = kubernetes.inventory(namespace)
    release("upgrade", CHART, values=FULL[larger])
    assert len(few) < len(kubernetes.inventory(namespace))
    release("upgrade", CHART, values=FULL[smaller])
    kept = {f"Secret/sh.helm.release.v1.{OURS}.v{each}" for each in (2, 3)}
    assert few | kept == kubernetes.inventory(namespace)


def test_a_server_side_apply_changes_the_strategy(kubernetes: ApiServer, namespace: str) -> None:
    """As Argo CD and Helm 4 apply: what the server had added by itself would stay."""
    for state in ({"volumeClaim": False}, {"volumeClaim": True}, {"volumeClaim": False}):
        deployment = one(render(merged(PER_CLUSTER, {"state": state})), "Deployment")
        answer = kubernetes.client.patch(
            f"/apis/apps/v1/namespaces/{namespace}/deployments/{OURS}",
            params={"fieldManager": "argocd"},
            json=deployment,
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        assert answer.is_success, answer.json()["message"]
        assert deployment["spec"]["strategy"] == answer.json()["spec"]["strategy"]


@pytest.mark.parametrize("way", ["--values", "--reuse-values"])
def test_an_older_file_of_values_stays_valid(
    kubernetes: ApiServer, namespace: str, release: Release, tmp_path: Path, way: str
) -> None:
    """All of an older version's values are taken, and none that is newer must be there."""
    older = tmp_path / "throttle-sidecar"
    shutil.copytree(CHART, older)
    shutil.copy(OLDER, older / "values.yaml")
    release("install", older, values=PER_CLUSTER)
    if way == "--reuse-values":
        release("upgrade", CHART, way, "--set", "throttle.mode=observe")
    else:
        release("upgrade", CHART, way, OLDER, values=merged(PER_CLUSTER, CHANGED))
    settings = kubernetes.get("v1", "ConfigMap", OURS, namespace)["data"]
    assert "observe" == settings["SIDECAR_MODE"]
    release("uninstall")


def pod(found: list[Resource], kind: str = "Deployment") -> Resource:
    """The pod that a controller would make of the Deployment or the Job."""
    template = one(found, kind)["spec"]["template"]
    labels = template["metadata"]["labels"]
    return resource("Pod", "throttle-sidecar-0", labels, spec=template["spec"])


@pytest.mark.parametrize("name", [name for name in FULL if not name.startswith("beside")])
def test_pod_security_admits_the_pod(
    kubernetes: ApiServer, namespace: str, release: Release, name: str
) -> None:
    """By the profile "restricted"; the pod has the chart's account, and a token only for events."""
    found = render(FULL[name])
    account = one(found, "ServiceAccount")
    kubernetes.create(account, namespace)
    admitted = kubernetes.create(pod(found), namespace)["spec"]
    assert account["metadata"]["name"] == admitted["serviceAccountName"]
    has_token = any("projected" in each for each in admitted["volumes"])
    assert FULL[name].get("kubernetesEvents", False) == has_token


def test_pod_security_admits_the_pod_of_an_uninstallation(
    kubernetes: ApiServer, namespace: str
) -> None:
    """With the account that the hook brings again."""
    found = hooks(FULL["per-cluster, client-quotas"])
    kubernetes.create(one(found, "ServiceAccount"), namespace)
    admitted = kubernetes.create(pod(found, "Job"), namespace)["spec"]
    assert not any("projected" in each for each in admitted["volumes"])


def test_what_a_failed_uninstallation_leaves_is_no_obstacle(
    kubernetes: ApiServer, namespace: str, release: Release
) -> None:
    """Helm would adopt nothing of the same name, since a hook's resources are of no release."""
    values = FULL["per-cluster, client-quotas"]
    for each in hooks(values):
        kubernetes.create(each, namespace)
    release("install", CHART, values=values)
    assert kubernetes.get("apps/v1", "Deployment", OURS, namespace)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("securityContext", "allowPrivilegeEscalation"), True),
        (("securityContext", "capabilities"), None),
        (("podSecurityContext", "runAsNonRoot"), False),
        (("podSecurityContext", "seccompProfile"), None),
        (("extraVolumes",), [{"name": "node", "hostPath": {"path": "/"}}]),
    ],
    ids=lambda each: each[-1] if isinstance(each, tuple) else "",
)
def test_pod_security_refuses_what_is_less(
    kubernetes: ApiServer, namespace: str, path: tuple[str, ...], value: object
) -> None:
    """So the profile is enforced here."""
    found = render(merged(PER_CLUSTER, at(path, value)))
    kubernetes.create(one(found, "ServiceAccount"), namespace)
    with pytest.raises(NotTakenError, match='violates PodSecurity "restricted'):
        kubernetes.create(pod(found), namespace)


@pytest.mark.parametrize("name", ["beside-broker", "beside-broker, full"])
def test_pod_security_admits_our_containers_beside_a_broker(
    kubernetes: ApiServer, namespace: str, name: str
) -> None:
    """They add nothing to what the profile forbids, and have no token where the broker has one."""
    template = patched(render(FULL[name]))["spec"]["template"]
    for each in template["spec"]["containers"]:
        if OURS not in each["image"]:
            # The example's broker has the image's user, of which the profile can't know.
            secure = our_containers(template["spec"])[0]["securityContext"]
            each["securityContext"] = secure | {"runAsUser": 1000}
    template["spec"]["volumes"].append({"name": "data", "emptyDir": {}})
    broker = {"apiVersion": "v1", "kind": "Pod"} | template
    broker["metadata"]["name"] = "kafka-0"
    admitted = kubernetes.create(broker, namespace)["spec"]
    token = "/var/run/secrets/kubernetes.io/serviceaccount"
    for container in [*admitted["initContainers"], *admitted["containers"]]:
        (mount,) = (each for each in container["volumeMounts"] if each["mountPath"] == token)
        ours = container in our_containers(admitted)
        assert ours == (mount["name"] == "throttle-sidecar-no-token")
        assert ours != ("projected" in named(admitted["volumes"], mount["name"]))


def test_a_field_that_there_is_not_is_refused(kubernetes: ApiServer, namespace: str) -> None:
    """So the server's validation is strict here."""
    wrong = one(render(PER_CLUSTER), "Deployment")
    wrong["spec"]["template"]["spec"]["hostUsrs"] = False
    with pytest.raises(NotTakenError, match=r'unknown field "spec\.template\.spec\.hostUsrs"'):
        kubernetes.create(wrong, namespace, dry_run=True)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda each: each.stem)
def test_the_server_takes_the_examples(kubernetes: ApiServer, namespace: str, file: Path) -> None:
    """Each resource, with each of its fields."""
    for each in yaml.safe_load_all(file.read_text("utf-8")):
        kubernetes.create(each, namespace)


@pytest.mark.parametrize("name", PATCHED)
def test_the_server_applies_the_patches(kubernetes: ApiServer, namespace: str, name: str) -> None:
    """As ``kubectl patch`` of the notes sends them; twice is the same as once."""
    assert_it_is_patched(kubernetes, namespace, FULL[name])


def assert_it_is_patched(kubernetes: ApiServer, namespace: str, values: Values) -> None:
    found = render(values)
    patch = patch_of(found)
    kind, version = patch["kind"], patch["apiVersion"]
    kubernetes.create(example(kind) | {"apiVersion": version}, namespace)
    how = "strategic-merge-patch" if kind == "StatefulSet" else "merge-patch"
    operations = yaml.safe_load(for_brokers(found).get("authorizer.yaml", "[]"))
    once, result = (kubernetes.patch(patch, how, patch, namespace) for _ in range(2))
    assert once["spec"] == result["spec"]
    if operations:
        result = kubernetes.patch(patch, "json-patch", operations, namespace)
    expected = patched(found) | {"apiVersion": version}
    expected["metadata"]["name"] = "other"
    assert kubernetes.create(expected, namespace, dry_run=True)["spec"] == result["spec"]


@pytest.mark.parametrize("name", ["strimzi", "strimzi, full"])
def test_the_newest_strimzi_takes_the_same(
    newest: ApiServer, namespace: str, release: Release, name: str
) -> None:
    """The chart, the patch and the example."""
    for each in yaml.safe_load_all((EXAMPLES / "strimzi.yaml").read_text("utf-8")):
        newest.create(each, namespace, dry_run=True)
    assert_it_lives(newest, namespace, release, FULL[name])
    assert_it_is_patched(newest, namespace, FULL[name])
