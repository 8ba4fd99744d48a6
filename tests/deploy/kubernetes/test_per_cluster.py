"""One sidecar for a cluster: its Service finds it, what it may reach, and its settings."""

from pathlib import Path

import pytest
import trustme

from sidecar.settings import HostPort, Settings, load
from tests.deploy.kubernetes.rendered import (
    EXAMPLES,
    OURS,
    Resource,
    environ,
    example,
    named,
    one,
    our_containers,
    pod_templates,
)

pytestmark = pytest.mark.kustomize

BOTH = ("per-cluster", "strimzi")


MOUNTED = "/etc/throttle-sidecar/"
"""Where the certificates and the token are in the pod."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with such files."""
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "cluster-ca").mkdir()
    (folder / "user").mkdir()
    (folder / "token").mkdir()
    (folder / "token" / "token").write_text("secret")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "cluster-ca" / "ca.crt"))
    user = ca.issue_cert("throttle-sidecar", common_name="throttle-sidecar")
    user.cert_chain_pems[0].write_to_path(str(folder / "user" / "user.crt"))
    user.private_key_pem.write_to_path(str(folder / "user" / "user.key"))
    return folder


def container(found: list[Resource]) -> Resource:
    (only,) = one(found, "Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(only)


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def settings_of(found: list[Resource]) -> Settings:
    """The daemon's settings from the environment of its container."""
    variables = {
        key: value
        for key, value in environ(found).items()
        if not key.startswith("SIDECAR_KAFKA_ADMIN_S")
    }
    return load(environ=variables).settings


@pytest.mark.parametrize("name", BOTH)
def test_the_service_finds_the_sidecar(name: str) -> None:
    """Its selector is the pod's labels, its port one of the container, its name what is asked."""
    found = example(name)
    template = one(found, "Deployment")["spec"]["template"]
    service = one(found, "Service")
    assert selects(service["spec"]["selector"], template["metadata"]["labels"])
    (port,) = service["spec"]["ports"]
    listens = named(container(found)["ports"], port["targetPort"])["containerPort"]
    assert HostPort("0.0.0.0", listens) == settings_of(found).http_listen
    assert (OURS, 7070) == (service["metadata"]["name"], port["port"])


@pytest.mark.parametrize("name", BOTH)
def test_two_never_write_the_same_state(name: str) -> None:
    """There is one pod, the old one ends before the new one starts, and a claim outlives both."""
    found = example(name)
    spec = one(found, "Deployment")["spec"]
    assert (1, "Recreate") == (spec["replicas"], spec["strategy"]["type"])
    claim = named(spec["template"]["spec"]["volumes"], "state")["persistentVolumeClaim"]
    assert claim["claimName"] == one(found, "PersistentVolumeClaim")["metadata"]["name"]
    file = settings_of(found).state_file
    mount = named(container(found)["volumeMounts"], "state")
    assert str(file).startswith(f"{mount['mountPath']}/")


@pytest.mark.parametrize("name", BOTH)
def test_a_sidecar_that_can_not_see_stays_reachable(name: str) -> None:
    """Each probe asks whether the loop turns, on the address without the API."""
    found = example(name)
    listens = settings_of(found).metrics_listen
    assert listens is not None
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container(found)[probe]["httpGet"]
        assert "/healthz" == asked["path"]
        assert listens.port == named(container(found)["ports"], asked["port"])["containerPort"]


@pytest.mark.parametrize("name", BOTH)
def test_it_has_nothing_of_kubernetes(name: str) -> None:
    """It has no token, and no variables of Services, which it would take for settings."""
    found = example(name)
    pod = one(found, "Deployment")["spec"]["template"]["spec"]
    account = one(found, "ServiceAccount")
    assert account["metadata"]["name"] == pod["serviceAccountName"]
    assert not account["automountServiceAccountToken"]
    assert not pod["automountServiceAccountToken"]
    assert not pod["enableServiceLinks"]


def test_the_settings_are_all_that_it_has() -> None:
    """Each container's environment is its settings, by their name with the hash."""
    for name in BOTH:
        found = example(name)
        reference = {"configMapRef": {"name": one(found, "ConfigMap")["metadata"]["name"]}}
        assert [reference] == container(found)["envFrom"]
        assert {"SIDECAR_TOKEN_FILE"} >= {each["name"] for each in container(found).get("env", [])}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_daemon_takes_the_settings(name: str, certificates: Path) -> None:
    """Every key is a setting's, and nothing is missing."""
    variables = environ(example(name))
    there = {key: value.replace(MOUNTED, f"{certificates}/") for key, value in variables.items()}
    loaded = load(environ=there)
    assert () == loaded.notices
    assert loaded.settings.kafka_admin is not None


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_file_of_a_setting_is_in_a_volume(name: str) -> None:
    """Its folder is where a volume is mounted: nothing else can be written, or exists."""
    found = example(name)
    (sidecar,) = (
        each
        for template in pod_templates(found)
        for each in our_containers(template)
        if ["run"] == each["args"]
    )
    mounted = {each["mountPath"] for each in sidecar["volumeMounts"]}
    files = [value for value in environ(found).values() if value.startswith("/")]
    assert files
    assert [] == [file for file in files if file.rpartition("/")[0] not in mounted]


@pytest.mark.parametrize("name", BOTH)
def test_brokers_alone_reach_the_api(name: str) -> None:
    """Prometheus reaches the metrics; the sidecar reaches its brokers and their names."""
    found = example(name)
    policy = one(found, "NetworkPolicy")["spec"]
    labels = one(found, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert selects(policy["podSelector"]["matchLabels"], labels)
    assert ["Ingress", "Egress"] == policy["policyTypes"]
    api, metrics = policy["ingress"]
    assert ["http"] == [each["port"] for each in api["ports"]]
    assert ["sidecar-metrics"] == [each["port"] for each in metrics["ports"]]
    brokers, names = policy["egress"]
    assert api["from"] == brokers["to"]
    assert {53} == {each["port"] for each in names["ports"]}
    for each in (*api["ports"], *metrics["ports"]):
        named(container(found)["ports"], each["port"])
