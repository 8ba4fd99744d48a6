"""The pods with a sidecar: what they may do, what restarts them, and what they have mounted."""

import json
from pathlib import Path

import pytest
import trustme

from sidecar.budgets.file import BudgetFile
from sidecar.relief.classes_file import ClassesFile
from sidecar.settings import HostPort, Settings, load
from tests.deploy.helm.rendered import (
    BESIDE_BROKER,
    FULL,
    NAMESPACE,
    OURS,
    PER_CLUSTER,
    ROOT,
    STRIMZI,
    WAYS,
    Resource,
    Values,
    for_brokers,
    hooks,
    merged,
    named,
    one,
    our_containers,
    patch_of,
    pod_of,
    render,
    settings_of,
    sidecar_of,
)

pytestmark = pytest.mark.helm

MOUNTED = "/etc/throttle-sidecar/"
"""Where the Secrets are in the pod."""

SECRETS = {
    "tls": {"enabled": True, "caSecret": {"name": "ca"}, "clientSecret": {"name": "client"}},
    "sasl": {"mechanism": "SCRAM-SHA-256", "username": "me", "secret": {"name": "login"}},
    "tokenSecret": {"name": "token"},
    "budgets": "[owners]",
    "relief": {"classes": "[[class]]"},
}
WITH_SECRETS = {
    "per-cluster": merged(PER_CLUSTER, SECRETS),
    "strimzi": merged(STRIMZI, {"tokenSecret": {"name": "token"}}),
    "strimzi, scram": merged(STRIMZI, {"strimzi": {"authentication": "scram-sha-512"}}),
    "beside-broker": merged(BESIDE_BROKER, SECRETS),
}
OF_CLUSTER = ("per-cluster", "strimzi")


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the chart mounts."""
    folder = tmp_path_factory.mktemp("secrets")
    ca = trustme.CA()
    client = ca.issue_cert("throttle-sidecar", common_name="throttle-sidecar")
    for each in ("ca", "client", "sasl", "token"):
        (folder / each).mkdir()
    ca.cert_pem.write_to_path(str(folder / "ca" / "ca.crt"))
    for name in ("tls", "user"):
        client.cert_chain_pems[0].write_to_path(str(folder / "client" / f"{name}.crt"))
        client.private_key_pem.write_to_path(str(folder / "client" / f"{name}.key"))
    (folder / "sasl" / "password").write_text("secret")
    (folder / "token" / "token").write_text("secret")
    return folder


def loaded(values: Values, secrets: Path) -> Settings:
    """What the daemon makes of the settings, without a notice."""
    variables = settings_of(render(values))
    there = {key: value.replace(MOUNTED, f"{secrets}/") for key, value in variables.items()}
    found = load(environ=there)
    assert () == found.notices
    return found.settings


@pytest.mark.parametrize("name", WAYS)
def test_the_daemon_takes_the_settings(name: str, secrets: Path) -> None:
    """Every variable is a setting, and nothing is missing."""
    admin = loaded(WAYS[name], secrets).kafka_admin
    assert admin is not None
    expected = {
        "per-cluster": "kafka-0.kafka:9092",
        "strimzi": "my-cluster-kafka-bootstrap:9093",
        "beside-broker": "localhost:9092",
    }
    assert expected[name] == str(admin.bootstrap_servers[0])


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("per-cluster", "SASL_SSL"),
        ("strimzi", "SSL"),
        ("strimzi, scram", "SASL_SSL"),
        ("beside-broker", "SASL_SSL"),
    ],
)
def test_the_daemon_takes_its_secrets(name: str, protocol: str, secrets: Path) -> None:
    """Each file is one of a Secret that is mounted."""
    settings = loaded(WITH_SECRETS[name], secrets)
    assert settings.kafka_admin is not None
    assert protocol == settings.kafka_admin.security_protocol
    if "SASL" in protocol:
        assert settings.kafka_admin.sasl_password is not None


def test_every_limit_is_one_of_the_daemon(secrets: Path) -> None:
    """Sizes and shares are read as they are written in the values."""
    values = {
        "bootstrapServers": ["b1:9092"],
        "limit": {"minAvailableBytes": 20_000_000_000},
        "softLimit": {"minAvailableBytes": "30GB"},
        "stopLine": {"minAvailableBytes": "10Gi"},
        "throttle": {"mode": "observe", "scope": "volume"},
        "settings": {"SIDECAR_THROTTLE_FACTOR_FALLBACK": 0.5},
        "monitoring": {"runbooksUrl": "https://example.org/runbooks"},
    }
    settings = loaded(values, secrets)
    assert settings.limit is not None
    assert settings.slope is not None
    assert settings.stop_line is not None
    assert 20_000_000_000 == settings.limit.value
    assert 30_000_000_000 == settings.slope.soft_limit.value
    assert 10 << 30 == settings.stop_line.value
    assert ("observe", "volume", 0.5) == (settings.mode, settings.scope, settings.fallback)
    assert "https://example.org/runbooks/" == settings.runbooks_url


@pytest.mark.parametrize("name", WITH_SECRETS)
def test_each_file_of_a_setting_is_in_a_volume(name: str) -> None:
    """It or its folder is where a volume is mounted: nothing else can be written, or exists."""
    found = render(WITH_SECRETS[name])
    mounts = {each["mountPath"]: each for each in sidecar_of(found)["volumeMounts"]}
    files = [value for value in settings_of(found).values() if value.startswith("/")]
    assert 2 <= len(files)
    volumes = {each["name"] for each in pod_of(found)["volumes"]}
    for file in files:
        mount = mounts.get(file) or mounts[file.rpartition("/")[0]]
        assert mount["name"] in volumes
        assert mount.get("readOnly", False) == file.startswith(MOUNTED)


def test_the_daemon_takes_its_files(tmp_path: Path) -> None:
    """They are there as the values have them, and a broker starts without them."""
    found = render(FULL["beside-broker, full"])
    volume = named(pod_of(found)["volumes"], "throttle-sidecar-files")["configMap"]
    assert volume["optional"]
    for name, text in one(found, "ConfigMap", volume["name"])["data"].items():
        (tmp_path / name).write_text(text)
    (budget,) = BudgetFile(tmp_path / "budgets.toml").load()
    (expendable,) = ClassesFile(tmp_path / "relief.toml").load()
    assert ("etl", 3600.0) == (budget.owner, expendable.keep_s)
    assert "delete" == settings_of(found)["SIDECAR_RELIEF_MODE"]


def test_secrets_are_for_the_group_alone() -> None:
    """It is the group that the pod's volumes get; beside a broker, that is the broker's affair."""
    pod = pod_of(render(WITH_SECRETS["per-cluster"]))
    modes = {each["secret"]["defaultMode"] for each in pod["volumes"] if "secret" in each}
    assert {0o440} == modes
    assert 10001 == pod["securityContext"]["fsGroup"]
    beside = pod_of(render(WITH_SECRETS["beside-broker"]))
    assert not any("defaultMode" in each.get("secret", {}) for each in beside["volumes"])


@pytest.mark.parametrize("name", WAYS)
def test_our_containers_may_do_nothing(name: str) -> None:
    """They are as Pod Security Standards' restricted has it, with a root that can't be written."""
    pod = pod_of(render(WAYS[name]))
    containers = our_containers(pod)
    assert containers
    for container in containers:
        own = pod.get("securityContext", {}) | container["securityContext"]
        assert own["runAsNonRoot"]
        assert 10001 == own["runAsUser"] == own["runAsGroup"]
        assert {"type": "RuntimeDefault"} == own["seccompProfile"]
        assert own["readOnlyRootFilesystem"]
        assert not own["allowPrivilegeEscalation"]
        assert {"drop": ["ALL"]} == own["capabilities"]
    kinds = {key for volume in pod["volumes"] for key in volume if key != "name"}
    # The profile allows these kinds of volumes, and no path of the node.
    assert kinds <= {"emptyDir", "secret", "persistentVolumeClaim", "configMap"}
    assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}


def test_our_containers_ask_for_what_the_page_says() -> None:
    """The memory limit is above the measured use; a limit of CPU would stretch polls."""
    page = " ".join((ROOT / "docs" / "kubernetes.md").read_text("utf-8").split())
    assert "requests 10m of CPU and 96 MiB, and is limited to 256 MiB" in page
    expected = {"requests": {"cpu": "10m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}}
    for way in WAYS.values():
        for container in our_containers(pod_of(render(way))):
            assert expected == container["resources"]


def test_openshift_may_choose_the_user() -> None:
    """A null takes a number away."""
    numbers = ("runAsUser", "runAsGroup", "fsGroup")
    values = {"podSecurityContext": dict.fromkeys(numbers)}
    for way in (PER_CLUSTER, BESIDE_BROKER):
        pod = pod_of(render(merged(way, values)))
        assert not pod.get("securityContext", {}).keys() & set(numbers)
        for container in our_containers(pod):
            assert not container["securityContext"].keys() & set(numbers)


def test_the_user_is_that_of_the_dockerfile() -> None:
    """The folder for the state is its own."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    user = pod_of(render(PER_CLUSTER))["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}\n" in text
    mounts = sidecar_of(render(PER_CLUSTER))["volumeMounts"]
    assert named(mounts, "throttle-sidecar-state")["mountPath"] in text
    # Where the jar is that Strimzi's brokers read: test_brokers.py has the path.
    assert "ours=/image/opt/throttle-sidecar;" in text
    assert '/ours/* "$ours/lib/python3.11/site-packages/"' in text


@pytest.mark.parametrize("name", OF_CLUSTER)
def test_a_sidecar_that_can_not_see_stays_reachable(name: str) -> None:
    """Each probe asks whether the loop turns, on the address without the API."""
    container = sidecar_of(render(WAYS[name]))
    listens = listening(WAYS[name]).metrics_listen
    assert listens is not None
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert "/healthz" == asked["path"]
        assert listens.port == named(container["ports"], asked["port"])["containerPort"]


def listening(values: Values) -> Settings:
    """The settings without those of Kafka's files."""
    variables = settings_of(render(values)).items()
    kept = {key: value for key, value in variables if not key.startswith("SIDECAR_KAFKA_ADMIN_S")}
    return load(environ=kept).settings


@pytest.mark.parametrize("name", OF_CLUSTER)
def test_the_service_finds_the_sidecar(name: str) -> None:
    """Its selector is the pod's labels, and its port one of the container."""
    found = render(WAYS[name])
    template = one(found, "Deployment")["spec"]["template"]
    service = one(found, "Service")["spec"]
    assert service["selector"].items() <= template["metadata"]["labels"].items()
    (port,) = service["ports"]
    listens = named(sidecar_of(found)["ports"], port["targetPort"])["containerPort"]
    assert HostPort("0.0.0.0", listens) == listening(WAYS[name]).http_listen


@pytest.mark.parametrize("values", [PER_CLUSTER, BESIDE_BROKER])
def test_a_mesh_knows_what_the_service_speaks(values: Values) -> None:
    """A proxy takes TLS for HTTP on a port that is called http, unless the port says otherwise."""
    shared = merged(values, {"besideBroker": {"service": True}})
    for tls in ({}, {"apiTls": {"secret": {"name": "api-tls"}}}):
        found = render(merged(shared, tls))
        (port,) = one(found, "Service")["spec"]["ports"]
        url = f"{port['appProtocol']}://{OURS}.{NAMESPACE}.svc:7070"
        assert any(url in text for text in for_brokers(found).values())


@pytest.mark.parametrize("name", OF_CLUSTER)
def test_it_has_nothing_of_kubernetes(name: str) -> None:
    """It has no token, and no variables of Services, which it would take for settings."""
    found = render(WAYS[name])
    pod = pod_of(found)
    account = one(found, "ServiceAccount")
    assert account["metadata"]["name"] == pod["serviceAccountName"]
    assert not account["automountServiceAccountToken"]
    assert not pod["automountServiceAccountToken"]
    assert not pod["enableServiceLinks"]


def test_for_events_it_has_a_token_and_one_right() -> None:
    """The Role is its account's; the daemon takes the pod's name; other pods get no token."""
    found = render(merged(FULL["per-cluster, full"], {"serviceAccount": {"name": "sa"}}))
    binding, role = one(found, "RoleBinding"), one(found, "Role")
    assert role["metadata"]["name"] == binding["roleRef"]["name"]
    assert [("ServiceAccount", "sa", NAMESPACE)] == [
        (each["kind"], each["name"], each["namespace"]) for each in binding["subjects"]
    ]
    assert pod_of(found)["automountServiceAccountToken"]
    assert not one(found, "ServiceAccount")["automountServiceAccountToken"]
    *fields, written = sidecar_of(found)["env"]
    pod = {f"POD_{key.upper()}": key for key in ("namespace", "name", "uid")}
    assert {key: f"metadata.{path}" for key, path in pod.items()} == {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in fields
    }
    value = written["value"]
    for key, path in pod.items():
        value = value.replace(f"$({key})", path)
    settings = load(environ={"SIDECAR_STORAGE_CHECK_INTERVAL": "0s", written["name"]: value})
    assert "namespace/name/uid" == settings.settings.kubernetes_pod
    after = hooks(merged(FULL["per-cluster, client-quotas"], {"kubernetesEvents": True}))
    assert not one(after, "Job")["spec"]["template"]["spec"]["automountServiceAccountToken"]


def test_without_an_account_of_its_own_it_has_the_default() -> None:
    """That exists in every namespace."""
    found = render(merged(PER_CLUSTER, {"serviceAccount": {"create": False}}))
    assert "default" == pod_of(found)["serviceAccountName"]


def test_two_never_write_the_same_state() -> None:
    """With a claim, the old pod ends before the new one starts."""
    found = render(PER_CLUSTER)
    spec = one(found, "Deployment")["spec"]
    assert (1, {"type": "Recreate"}) == (spec["replicas"], spec["strategy"])
    claim = named(pod_of(found)["volumes"], "throttle-sidecar-state")["persistentVolumeClaim"]
    assert claim["claimName"] == one(found, "PersistentVolumeClaim")["metadata"]["name"]
    for state in ({"existingClaim": "old"}, {"volumeClaim": False}):
        kinds = {each["kind"] for each in render(merged(PER_CLUSTER, {"state": state}))}
        assert "PersistentVolumeClaim" not in kinds


def test_several_are_spread_and_replaced_one_by_one() -> None:
    """The constraint and the budget are about these pods."""
    values = {
        "replicas": 3,
        "state": {"volumeClaim": False},
        "podDisruptionBudget": {"enabled": True},
    }
    found = render(merged(PER_CLUSTER, values))
    spec = one(found, "Deployment")["spec"]
    rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert {"type": "RollingUpdate", "rollingUpdate": rolling} == spec["strategy"]
    (constraint,) = spec["template"]["spec"]["topologySpreadConstraints"]
    budget = one(found, "PodDisruptionBudget")["spec"]
    assert spec["selector"] == constraint["labelSelector"] == budget["selector"]


def test_a_constraint_keeps_its_own_selector() -> None:
    """It is only added where it is missing."""
    own = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    found = render(merged(PER_CLUSTER, {"topologySpreadConstraints": [own]}))
    (constraint,) = pod_of(found)["topologySpreadConstraints"]
    assert own == constraint


def test_a_changed_setting_replaces_the_pod() -> None:
    """Its template changes with the settings alone."""
    before, same, after = (
        one(render(merged(PER_CLUSTER, values)), "Deployment")["spec"]["template"]
        for values in ({}, {"monitoring": {"rules": True}}, {"throttle": {"mode": "observe"}})
    )
    assert before == same
    assert before != after


def test_labels_of_ones_own_take_no_place_of_a_selector() -> None:
    """A label is there once: Flux refuses a key that is there twice."""
    own = {"app.kubernetes.io/name": "mine", "app.kubernetes.io/version": "9", "team": "kafka"}
    noted = {"checksum/settings": "mine", "team": "kafka"}
    values = merged(FULL["per-cluster, client-quotas"], {"podLabels": own, "podAnnotations": noted})
    found = render(values)
    for maker in (one(found, "Deployment"), one(hooks(values), "Job")):
        labels = maker["spec"]["template"]["metadata"]["labels"]
        assert one(found, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"].items() <= (
            labels.items()
        )
        assert ("9", "kafka") == (labels["app.kubernetes.io/version"], labels["team"])
    annotations = one(found, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert "kafka" == annotations["team"]
    assert "mine" != annotations["checksum/settings"]


@pytest.mark.parametrize("name", OF_CLUSTER)
def test_the_pod_is_for_linux(name: str) -> None:
    """Some clusters have Windows nodes without a taint, which can't run the image."""
    found = render(merged(WAYS[name], {"nodeSelector": {"disk": "fast"}}))
    assert {"kubernetes.io/os": "linux", "disk": "fast"} == pod_of(found)["nodeSelector"]


def test_brokers_alone_reach_the_api() -> None:
    """Prometheus reaches the metrics; the sidecar reaches its brokers and their names."""
    found = render(merged(PER_CLUSTER, {"networkPolicy": {"enabled": True}}))
    policy = one(found, "NetworkPolicy")["spec"]
    labels = one(found, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert ["Ingress", "Egress"] == policy["policyTypes"]
    api, metrics = policy["ingress"]
    assert ["http"] == [each["port"] for each in api["ports"]]
    assert ["sidecar-metrics"] == [each["port"] for each in metrics["ports"]]
    brokers, names = policy["egress"]
    assert api["from"] == brokers["to"]
    assert {53} == {each["port"] for each in names["ports"]}
    # The cache of names on each node is in the network of the node, where no label selects it.
    assert {"ipBlock": {"cidr": "169.254.20.10/32"}} in names["to"]
    for each in (*api["ports"], *metrics["ports"]):
        named(sidecar_of(found)["ports"], each["port"])


def test_the_network_policy_knows_the_brokers_of_strimzi() -> None:
    """Their pods have the label by which they are admitted."""
    found: list[Resource] = render(merged(STRIMZI, {"networkPolicy": {"enabled": True}}))
    (peer,) = one(found, "NetworkPolicy")["spec"]["ingress"][0]["from"]
    labels = patch_of(found)["spec"]["kafka"]["template"]["pod"]["metadata"]["labels"]
    assert peer["podSelector"]["matchLabels"].items() <= labels.items()


def test_the_pod_of_an_uninstallation_is_that_of_the_deployment() -> None:
    """It has the same settings, Secrets, state, account and rights, but another command."""
    values = FULL["per-cluster, client-quotas"]
    found, after = render(values), formerly(hooks(values))
    own, pod = pod_of(found), one(after, "Job")["spec"]["template"]["spec"]
    (before,), (container,) = own.pop("containers"), pod.pop("containers")
    assert ["quotas", "restore", "--forget"] == container.pop("args")
    assert container.items() <= before.items()
    assert "Never" == pod.pop("restartPolicy")
    assert pod.items() <= own.items()
    assert {"terminationGracePeriodSeconds", "topologySpreadConstraints"} == own.keys() - pod.keys()


@pytest.mark.parametrize("account", [{}, {"name": "sa"}, {"name": "sa", "create": False}])
def test_an_uninstallation_takes_no_name_of_the_release(account: Values) -> None:
    """Argo CD keeps one of two with the same name, and Helm adopts none that a Job left."""
    values = merged(FULL["per-cluster, client-quotas"], {"serviceAccount": account})
    after = hooks(values)
    assert {f"{OURS}-uninstall"} == {each["metadata"]["name"] for each in after}
    pod = one(after, "Job")["spec"]["template"]["spec"]
    (settings, _) = pod["containers"][0]["envFrom"]
    assert one(after, "ConfigMap", settings["configMapRef"]["name"])
    if account.get("create", True):
        assert one(after, "ServiceAccount", pod["serviceAccountName"])
    else:
        assert "sa" == pod["serviceAccountName"]


def formerly(after: list[Resource]) -> list[Resource]:
    """The hooks with the names of the release, except the Job's."""
    text = json.dumps(after).replace(f"{OURS}-uninstall", OURS)
    found: list[Resource] = json.loads(text)
    return found


def test_an_uninstallation_has_what_helm_has_removed() -> None:
    """Settings, account and network policy are there before the Job, as they were."""
    values = FULL["per-cluster, client-quotas"]
    found, after = render(values), formerly(hooks(values))
    labels = one(after, "Job")["spec"]["template"]["metadata"]["labels"]
    policy = one(after, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    assert policy.items() <= labels.items()
    assert "d" == labels["c"]
    for each in after:
        annotations = each["metadata"].pop("annotations")
        assert "post-delete" == annotations.pop("helm.sh/hook")
        assert "hook-succeeded" in annotations.pop("helm.sh/hook-delete-policy")
        if each["kind"] == "Job":
            assert {} == annotations
            continue
        assert "-1" == annotations.pop("helm.sh/hook-weight")
        former = one(found, each["kind"], each["metadata"]["name"])
        assert annotations == former["metadata"].pop("annotations", {})
        assert former == each
    assert {"ConfigMap", "ServiceAccount", "NetworkPolicy", "Job"} == {e["kind"] for e in after}


@pytest.mark.parametrize("enforcement", ["client-quotas", "none"])
def test_without_a_callback_brokers_need_nothing(enforcement: str) -> None:
    """There are notes alone, and a hook only where quotas may be lowered."""
    values = merged(PER_CLUSTER, {"enforcement": enforcement})
    texts = for_brokers(render(values))
    assert ["notes.txt"] == list(texts)
    assert "The brokers need nothing" in texts["notes.txt"]
    kinds = ["ConfigMap", "Job", "ServiceAccount"] if enforcement == "client-quotas" else []
    assert kinds == sorted(each["kind"] for each in hooks(values))
    assert [] == hooks(PER_CLUSTER)
