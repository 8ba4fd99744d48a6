"""Each value of the chart changes what it should, and a wrong one is refused by its name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from tests.deploy.helm.rendered import (
    BESIDE_BROKER,
    DEFAULTS,
    PER_CLUSTER,
    SCHEMA,
    STRIMZI,
    RefusedError,
    Values,
    at,
    for_brokers,
    leaves,
    merged,
    render,
    settings_of,
)

pytestmark = pytest.mark.helm

NULLABLE = {(), ("apiTls",), ("relief",), ("resources",), ("callback", "tlsSecret")}
"""The maps without which it works: the whole, one that may be null, and those of later versions."""
POD = "spec template spec"
CONTAINER = f"{POD} containers 0"
LEAVES = {".".join(path): schema for path, schema in leaves(SCHEMA)}
CLOSED = sorted({path[:end] for path, _ in leaves(SCHEMA) for end in range(len(path))})
"""The paths of the maps that have only the keys of the schema."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a value does.

    Attributes:
        value: the value.
        where: a kind, or "settings", "patch", "authorizer" or "dashboard".
        path: where in it, by keys and indexes.
        shown: what is there then, and was not before; None if nothing is.
        given: the other values.
    """

    value: Any
    where: str
    path: str
    shown: Any
    given: Values = field(default_factory=lambda: PER_CLUSTER)


def setting(value: Any, name: str, shown: str, given: Values = PER_CLUSTER) -> Effect:
    """The value is a setting of the daemon."""
    return Effect(value, "settings", f"SIDECAR_{name}", shown, given)


def given(path: str, value: Any, others: Values = PER_CLUSTER) -> dict[str, Any]:
    """Other values, and one by its path with dots."""
    return merged(others, at(tuple(path.split(".")), value))


BARE = {"bootstrapServers": "kafka:9092"}
LINE = "STORAGE_PER_VOLUME"
TLS = given("tls.enabled", True)
CLIENT = merged(TLS, given("tls.clientSecret.name", "mine"))
API = given("apiTls.secret.name", "api-tls")
BOTH_SIDES = {
    "apiTls": {"secret": {"name": "api-tls"}, "clientCaSecret": {"name": "clients"}},
    "callback": {"tlsSecret": {"name": "mine"}},
}
MUTUAL = merged(STRIMZI, BOTH_SIDES)
CALLBACK = "spec kafka config client.quota.callback.sidecar.ssl"
MOUNTED = "spec kafka template pod volumes 0 secret secretName"
CLASSES = given("relief.classes", "[[class]]")
SASL = given("sasl", {"mechanism": "PLAIN", "username": "me", "secret": {"name": "login"}})
POLICY = given("networkPolicy.enabled", True)
SEVERAL = merged(given("replicas", 2), {"state": {"volumeClaim": False}})
MONITOR = given("monitoring.monitor", "PodMonitor")
ENDPOINT = "spec podMetricsEndpoints 0"
EXCLUDED = "client.quota.callback.sidecar.excluded.principals"
PEER = {"ipBlock": {"cidr": "10.0.0.0/8"}}
EGRESS = {"to": [PEER], "ports": [{"port": 443}]}
ACL = {"resource": {"type": "topic", "name": "*"}, "operations": ["Describe"]}
DIGEST = f"sha256:{'a' * 64}"

EFFECTS: Mapping[str, Effect] = {
    "mode": Effect("beside-broker", "patch", "kind", "StatefulSet"),
    "bootstrapServers": setting(["a:1", "b:2"], "KAFKA_ADMIN_BOOTSTRAP_SERVERS", "a:1,b:2"),
    "limit.minAvailableBytes": setting(
        10_000_000_000, f"{LINE}_LIMIT_MIN_AVAILABLE_BYTES", "10000000000", BARE
    ),
    "limit.minAvailableRatio": setting(0.05, f"{LINE}_LIMIT_MIN_AVAILABLE_RATIO", "0.05", BARE),
    "softLimit.minAvailableBytes": setting(
        "10Gi", f"{LINE}_SOFT_LIMIT_MIN_AVAILABLE_BYTES", "10Gi"
    ),
    "softLimit.minAvailableRatio": setting("0.2", f"{LINE}_SOFT_LIMIT_MIN_AVAILABLE_RATIO", "0.2"),
    "stopLine.minAvailableBytes": setting("1.5GB", f"{LINE}_STOP_MIN_AVAILABLE_BYTES", "1.5GB"),
    "stopLine.minAvailableRatio": setting(0.01, f"{LINE}_STOP_MIN_AVAILABLE_RATIO", "0.01"),
    "throttle.mode": setting("observe", "MODE", "observe"),
    "throttle.scope": setting("volume", "THROTTLE_SCOPE", "volume"),
    "enforcement": setting("none", "ENFORCEMENT", "none"),
    "clientQuotaFloor": setting(
        "1Mi", "CLIENT_QUOTA_FLOOR", "1Mi", given("enforcement", "client-quotas")
    ),
    "budgets": setting("[owners]", "BUDGETS_FILE", "/etc/throttle-sidecar/files/budgets.toml"),
    "relief.mode": setting("delete", "RELIEF_MODE", "delete", CLASSES),
    "relief.classes": setting(
        "[[class]]", "RELIEF_FILE", "/etc/throttle-sidecar/files/relief.toml"
    ),
    "settings": setting(
        {"SIDECAR_HISTORY_MAX_BYTES": 5_000_000_000}, "HISTORY_MAX_BYTES", "5000000000"
    ),
    "settingsSecret": Effect("more", "Deployment", f"{CONTAINER} envFrom 1 secretRef name", "more"),
    "strimzi.cluster": Effect(
        "other", "KafkaUser", "metadata labels strimzi.io/cluster", "other", STRIMZI
    ),
    "strimzi.user": Effect("reader", "KafkaUser", "metadata name", "reader", STRIMZI),
    "strimzi.secret": Effect(
        "kafka-reader", "Deployment", f"{POD} volumes 2 secret secretName", "kafka-reader", STRIMZI
    ),
    "strimzi.createUser": Effect(False, "KafkaUser", "kind", None, STRIMZI),
    "strimzi.authentication": setting(
        "scram-sha-512", "KAFKA_ADMIN_SASL_MECHANISM", "SCRAM-SHA-512", STRIMZI
    ),
    "strimzi.authorization": Effect(False, "KafkaUser", "spec authorization", None, STRIMZI),
    "strimzi.extraAcls": Effect([ACL], "KafkaUser", "spec authorization acls 1", ACL, STRIMZI),
    "strimzi.apiVersion": Effect(
        "v1beta2", "KafkaUser", "apiVersion", "kafka.strimzi.io/v1beta2", STRIMZI
    ),
    "tls.enabled": setting(True, "KAFKA_ADMIN_SECURITY_PROTOCOL", "SSL"),
    "tls.caSecret.name": Effect(
        "trusted", "Deployment", f"{POD} volumes 1 secret secretName", "trusted", TLS
    ),
    "tls.caSecret.key": setting(
        "x.pem",
        "KAFKA_ADMIN_SSL_TRUSTSTORE_LOCATION",
        "/etc/throttle-sidecar/ca/x.pem",
        merged(TLS, given("tls.caSecret.name", "trusted")),
    ),
    "tls.clientSecret.name": Effect(
        "mine", "Deployment", f"{POD} volumes 1 secret secretName", "mine", TLS
    ),
    "tls.clientSecret.certificate": setting(
        "x.crt",
        "KAFKA_ADMIN_SSL_KEYSTORE_LOCATION",
        "/etc/throttle-sidecar/client/x.crt",
        CLIENT,
    ),
    "tls.clientSecret.key": setting(
        "x.key",
        "KAFKA_ADMIN_SSL_KEYSTORE_KEY_LOCATION",
        "/etc/throttle-sidecar/client/x.key",
        CLIENT,
    ),
    "sasl.mechanism": setting("SCRAM-SHA-256", "KAFKA_ADMIN_SASL_MECHANISM", "SCRAM-SHA-256", SASL),
    "sasl.username": setting("you", "KAFKA_ADMIN_SASL_USERNAME", "you", SASL),
    "sasl.secret.name": Effect(
        "other", "Deployment", f"{POD} volumes 1 secret secretName", "other", SASL
    ),
    "sasl.secret.key": setting(
        "word", "KAFKA_ADMIN_SASL_PASSWORD_FILE", "/etc/throttle-sidecar/sasl/word", SASL
    ),
    "apiTls.secret.name": Effect(
        "api-tls", "Deployment", f"{CONTAINER} livenessProbe httpGet scheme", "HTTPS"
    ),
    "apiTls.secret.certificate": setting(
        "x.crt", "HTTP_SSL_CERTIFICATE_FILE", "/etc/throttle-sidecar/api/x.crt", API
    ),
    "apiTls.secret.key": setting(
        "x.key", "HTTP_SSL_KEY_FILE", "/etc/throttle-sidecar/api/x.key", API
    ),
    "apiTls.secret.ca": Effect(
        "x.pem",
        "patch",
        f"{CALLBACK}.ca.file",
        "/mnt/throttle-sidecar-tls/x.pem",
        merged(STRIMZI, given("apiTls.secret.name", "api-tls", STRIMZI)),
    ),
    "apiTls.clientCaSecret.name": Effect(
        "other",
        "Deployment",
        f"{POD} volumes 2 secret secretName",
        "other",
        merged(PER_CLUSTER, BOTH_SIDES),
    ),
    "apiTls.clientCaSecret.key": setting(
        "x.pem",
        "HTTP_SSL_CLIENT_CA_FILE",
        "/etc/throttle-sidecar/client-ca/x.pem",
        merged(PER_CLUSTER, BOTH_SIDES),
    ),
    "tokenSecret.name": Effect(
        "admin", "Deployment", f"{POD} volumes 1 secret secretName", "admin"
    ),
    "tokenSecret.key": setting(
        "word",
        "TOKEN_FILE",
        "/etc/throttle-sidecar/token/word",
        given("tokenSecret.name", "admin"),
    ),
    "image.repository": Effect(
        "r.example.org/x", "Deployment", f"{CONTAINER} image", "r.example.org/x:0.1.0"
    ),
    "image.tag": Effect("9", "Deployment", f"{CONTAINER} image", "throttle-sidecar:9"),
    "image.digest": Effect(
        DIGEST, "Deployment", f"{CONTAINER} image", f"throttle-sidecar@{DIGEST}"
    ),
    "image.pullPolicy": Effect("Always", "Deployment", f"{CONTAINER} imagePullPolicy", "Always"),
    "imagePullSecrets": Effect(
        ["registry"], "Deployment", f"{POD} imagePullSecrets 0 name", "registry"
    ),
    "callback.jar": Effect(
        "configMap",
        "patch",
        "spec kafka template pod volumes 0 configMap name",
        "throttle-sidecar-quota-callback",
        STRIMZI,
    ),
    "callback.configMap": Effect(
        "jar",
        "patch",
        "spec kafka template pod volumes 0 configMap name",
        "jar",
        given("callback.jar", "configMap", STRIMZI),
    ),
    "callback.authorizer": Effect(True, "authorizer", "1 value", "custom", STRIMZI),
    "callback.tlsSecret.name": Effect("brokers", "patch", MOUNTED, "brokers", MUTUAL),
    "callback.tlsSecret.ca": Effect(
        "x.pem", "patch", f"{CALLBACK}.ca.file", "/mnt/throttle-sidecar-tls/x.pem", MUTUAL
    ),
    "callback.tlsSecret.certificate": Effect(
        "x.crt", "patch", f"{CALLBACK}.certificate.file", "/mnt/throttle-sidecar-tls/x.crt", MUTUAL
    ),
    "callback.tlsSecret.key": Effect(
        "x.key", "patch", f"{CALLBACK}.key.file", "/mnt/throttle-sidecar-tls/x.key", MUTUAL
    ),
    "callback.reserveBytes": Effect(
        1 << 30,
        "patch",
        "spec kafka config client.quota.callback.sidecar.reserve.bytes",
        "1073741824",
        STRIMZI,
    ),
    "callback.excludedPrincipals": Effect(
        ["User:CN=mirror"],
        "patch",
        f"spec kafka config {EXCLUDED}",
        "User:CN=my-cluster-kafka,O=io.strimzi;User:CN=my-cluster-cruise-control,O=io.strimzi;"
        "User:CN=mirror",
        STRIMZI,
    ),
    "resources.requests": Effect(
        {"memory": "1Gi"}, "Deployment", f"{CONTAINER} resources requests memory", "1Gi"
    ),
    "resources.limits": Effect(
        {"memory": "1Gi"}, "Deployment", f"{CONTAINER} resources limits memory", "1Gi"
    ),
    "podSecurityContext": Effect(
        {"runAsUser": 5}, "Deployment", f"{POD} securityContext runAsUser", 5
    ),
    "securityContext": Effect(
        {"privileged": False}, "Deployment", f"{CONTAINER} securityContext privileged", False
    ),
    "extraVolumes": Effect([{"name": "more"}], "Deployment", f"{POD} volumes 1", {"name": "more"}),
    "extraVolumeMounts": Effect(
        [{"name": "more"}], "Deployment", f"{CONTAINER} volumeMounts 1", {"name": "more"}
    ),
    "fullnameOverride": Effect("other", "Deployment", "metadata name", "other"),
    "monitoring.monitor": Effect("ServiceMonitor", "ServiceMonitor", "kind", "ServiceMonitor"),
    "monitoring.interval": Effect("5s", "PodMonitor", f"{ENDPOINT} interval", "5s", MONITOR),
    "monitoring.tlsConfig": Effect(
        {"cert": {"secret": {"name": "prometheus"}}},
        "PodMonitor",
        f"{ENDPOINT} tlsConfig cert secret name",
        "prometheus",
        merged(API, MONITOR),
    ),
    "monitoring.cluster": Effect(
        "prod", "PodMonitor", f"{ENDPOINT} relabelings 0 replacement", "prod", MONITOR
    ),
    "monitoring.rules": Effect(True, "PrometheusRule", "spec groups 0 name", "throttle-sidecar"),
    "monitoring.runbooksUrl": setting("https://x.example", "RUNBOOKS_URL", "https://x.example"),
    "monitoring.labels": Effect(
        {"release": "prometheus"}, "PodMonitor", "metadata labels release", "prometheus", MONITOR
    ),
    "monitoring.dashboard.enabled": Effect(True, "dashboard", "kind", "ConfigMap"),
    "monitoring.dashboard.labels": Effect(
        {"mine": "yes"},
        "dashboard",
        "metadata labels mine",
        "yes",
        given("monitoring.dashboard.enabled", True),
    ),
    "monitoring.dashboard.annotations": Effect(
        {"folder": "Kafka"},
        "dashboard",
        "metadata annotations folder",
        "Kafka",
        given("monitoring.dashboard.enabled", True),
    ),
    "besideBroker.statefulSet": Effect("b", "patch", "metadata name", "b", BESIDE_BROKER),
    "besideBroker.container": Effect("b", "patch", f"{POD} containers 0 name", "b", BESIDE_BROKER),
    "besideBroker.service": Effect(True, "Service", "kind", "Service", BESIDE_BROKER),
    "replicas": Effect(3, "Deployment", "spec replicas", 3, SEVERAL),
    "state.volumeClaim": Effect(False, "Deployment", f"{POD} volumes 0 emptyDir", {}),
    "state.existingClaim": Effect(
        "old", "Deployment", f"{POD} volumes 0 persistentVolumeClaim claimName", "old"
    ),
    "state.size": Effect("2Gi", "PersistentVolumeClaim", "spec resources requests storage", "2Gi"),
    "state.storageClass": Effect("fast", "PersistentVolumeClaim", "spec storageClassName", "fast"),
    "serviceAccount.create": Effect(False, "ServiceAccount", "kind", None),
    "serviceAccount.name": Effect("sa", "Deployment", f"{POD} serviceAccountName", "sa"),
    "serviceAccount.annotations": Effect(
        {"a": "b"}, "ServiceAccount", "metadata annotations a", "b"
    ),
    "kubernetesEvents": Effect(
        True, "Role", "rules 0", {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}
    ),
    "podLabels": Effect({"a": "b"}, "Deployment", "spec template metadata labels a", "b"),
    "podAnnotations": Effect({"a": "b"}, "Deployment", "spec template metadata annotations a", "b"),
    "podDisruptionBudget.enabled": Effect(
        True, "PodDisruptionBudget", "spec maxUnavailable", 1, SEVERAL
    ),
    "podDisruptionBudget.maxUnavailable": Effect(
        "50%",
        "PodDisruptionBudget",
        "spec maxUnavailable",
        "50%",
        merged(SEVERAL, given("podDisruptionBudget.enabled", True)),
    ),
    "topologySpreadConstraints": Effect(
        [{"topologyKey": "zone"}],
        "Deployment",
        f"{POD} topologySpreadConstraints 0 topologyKey",
        "zone",
    ),
    "nodeSelector": Effect({"a": "b"}, "Deployment", f"{POD} nodeSelector a", "b"),
    "affinity": Effect({"nodeAffinity": {}}, "Deployment", f"{POD} affinity", {"nodeAffinity": {}}),
    "tolerations": Effect(
        [{"operator": "Exists"}], "Deployment", f"{POD} tolerations", [{"operator": "Exists"}]
    ),
    "priorityClassName": Effect("high", "Deployment", f"{POD} priorityClassName", "high"),
    "networkPolicy.enabled": Effect(True, "NetworkPolicy", "kind", "NetworkPolicy"),
    "networkPolicy.brokers": Effect([PEER], "NetworkPolicy", "spec ingress 0 from", [PEER], POLICY),
    "networkPolicy.prometheus": Effect(
        [PEER], "NetworkPolicy", "spec ingress 1 from", [PEER], POLICY
    ),
    "networkPolicy.dns": Effect([PEER], "NetworkPolicy", "spec egress 1 to", [PEER], POLICY),
    "networkPolicy.apiServer": Effect(
        [PEER],
        "NetworkPolicy",
        "spec egress 2 to",
        [PEER],
        merged(POLICY, given("kubernetesEvents", True)),
    ),
    "networkPolicy.extraEgress": Effect([EGRESS], "NetworkPolicy", "spec egress 2", EGRESS, POLICY),
}


def documents(values: Values) -> dict[str, Any]:
    """What is rendered, by the names of ``Effect.where``; empty if Helm refuses the values."""
    try:
        found = render(values)
    except RefusedError:
        return {}
    texts = for_brokers(found)
    kinds = {each["kind"]: each for each in found if each["kind"] != "ConfigMap"}
    dashboards = [each for each in found if each["metadata"]["name"].endswith("-dashboard")]
    return {
        **kinds,
        "settings": settings_of(found),
        "patch": yaml.safe_load(texts.get("patch.yaml", "")),
        "authorizer": yaml.safe_load(texts.get("authorizer.yaml", "")),
        "dashboard": next(iter(dashboards), None),
    }


def found_at(document: Any, path: str) -> Any:
    """What is at a path; None if nothing is."""
    for key in path.split():
        try:
            document = document[int(key) if isinstance(document, list) else key]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def test_every_value_has_an_effect_here() -> None:
    """No value is left out; the schema and the defaults have the same ones."""
    values = LEAVES.keys() - {"global", "enabled"}
    assert values == EFFECTS.keys()
    for path in values:
        inner: Any = DEFAULTS
        for key in path.split("."):
            inner = inner[key]


@pytest.mark.parametrize("path", EFFECTS)
def test_a_value_has_its_effect(path: str) -> None:
    """It changes the field that it is for."""
    effect = EFFECTS[path]
    before = documents(effect.given)
    after = documents(given(path, effect.value, effect.given))
    assert after
    assert effect.shown != found_at(before.get(effect.where), effect.path)
    assert effect.shown == found_at(after.get(effect.where), effect.path)


TEXT_FORMS = ({"type": "string"}, {"type": "string", "minLength": 1})
TEXTS = [
    path
    for path, effect in EFFECTS.items()
    if effect.value == effect.shown and LEAVES[path] in TEXT_FORMS
]
"""The values that are written down as they are, and may be any text."""


@pytest.mark.parametrize("path", TEXTS)
def test_a_text_that_looks_like_a_number_stays_a_text(path: str) -> None:
    """Kubernetes takes no number as a name, such as that of a Secret."""
    effect = EFFECTS[path]
    after = documents(given(path, "123", effect.given))
    assert "123" == found_at(after[effect.where], effect.path)


@pytest.mark.parametrize("path", EFFECTS)
def test_a_value_of_another_form_is_refused(path: str) -> None:
    """The message has its name."""
    is_many = LEAVES[path].get("type") in ("object", "array")
    with pytest.raises(RefusedError) as refused:
        render(given(path, "text" if is_many else {"a": 1}))
    assert f"- {path}: " in str(refused.value)


@pytest.mark.parametrize("path", CLOSED, ids=".".join)
def test_a_mistyped_value_is_refused(path: tuple[str, ...]) -> None:
    """The message has its name, and that of the map that it is in."""
    with pytest.raises(RefusedError) as refused:
        render(merged(PER_CLUSTER, at((*path, "mistyped"), 1)))
    where = ".".join(path) or "(root)"
    assert f"- {where}: Additional property mistyped is not allowed" in str(refused.value)


@pytest.mark.parametrize(
    "path",
    [
        "networkPolicy.brokers",
        "networkPolicy.prometheus",
        "networkPolicy.dns",
        "image.repository",
        "tokenSecret.key",
        *(".".join(path) for path in CLOSED if path not in NULLABLE),
    ],
)
def test_a_value_without_its_default_is_refused(path: str) -> None:
    """Of a list that is commented out Helm removes the default: everybody would get in."""
    with pytest.raises(RefusedError) as refused:
        render(given(path, None))
    assert f"{path.rpartition('.')[2]} is required" in str(refused.value)


@pytest.mark.parametrize("values", [PER_CLUSTER, BESIDE_BROKER])
@pytest.mark.parametrize("path", ["settings", "podSecurityContext", "securityContext"])
def test_an_open_map_may_be_null(path: str, values: Values) -> None:
    """Such as one whose lines are all commented out."""
    assert documents(given(path, None, values))


WRONG: Mapping[str, list[Any]] = {
    "mode": ["sidecar"],
    "limit.minAvailableBytes": ["10G", "10 apples", 0, 0.5, "0", "0Gi", "0.0 GB", "1.2.3GB"],
    "limit.minAvailableRatio": [0, 1, 1.5, "10%", "1.5", "0.0", ".0"],
    "throttle.mode": ["off"],
    "throttle.scope": ["topic"],
    "enforcement": ["jar"],
    "clientQuotaFloor": ["1G", 100],
    "relief.mode": ["keep"],
    "settings": [{"KAFKA_OPTS": "x"}, {"SIDECAR_MODE": ["observe"]}],
    "strimzi.authentication": ["plain"],
    "sasl.mechanism": ["GSSAPI"],
    "image.digest": ["sha256:1"],
    "callback.jar": ["url"],
    "callback.reserveBytes": ["1Gi", 0],
    "callback.excludedPrincipals": [["mirror"], ["User:a;User:b"]],
    "fullnameOverride": ["Upper", "-x", "x" * 54],
    "monitoring.monitor": ["Monitor"],
    "monitoring.interval": ["15"],
    "monitoring.runbooksUrl": ["x.example"],
    "replicas": [0, 1.5],
    "podDisruptionBudget.maxUnavailable": [0, "0%"],
    "networkPolicy.brokers": [[]],
}


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, wrong in WRONG.items() for value in wrong]
)
def test_a_wrong_value_is_refused(path: str, value: Any) -> None:
    """The message has its name."""
    with pytest.raises(RefusedError) as refused:
        render(given(path, value))
    assert f"- {path}" in str(refused.value)


CONTRADICTIONS: Mapping[str, Values] = {
    "bootstrapServers is not set: ": {"limit": {"minAvailableRatio": 0.1}},
    "no limit is set: ": BARE,
    "limit.minAvailableBytes and limit.minAvailableRatio are both set: remove one": given(
        "limit.minAvailableBytes", "1Gi"
    ),
    "softLimit.minAvailableBytes and softLimit.minAvailableRatio are both set": given(
        "softLimit", {"minAvailableBytes": "1Gi", "minAvailableRatio": 0.2}
    ),
    "settings.SIDECAR_KAFKA_ADMIN_SASL_PASSWORD is secret": given(
        "settings.SIDECAR_KAFKA_ADMIN_SASL_PASSWORD", "x"
    ),
    "settings.SIDECAR_BROKER_ID would be the same beside every broker": given(
        "settings.SIDECAR_BROKER_ID", 1, BESIDE_BROKER
    ),
    "kubernetesEvents is for mode per-cluster": given("kubernetesEvents", True, BESIDE_BROKER),
    "enforcement is none, but the patch of mode beside-broker adds": given(
        "enforcement", "none", BESIDE_BROKER
    ),
    "enforcement is client-quotas, but Strimzi's User Operator": given(
        "enforcement", "client-quotas", STRIMZI
    ),
    "throttle.scope is volume with client quotas, which need the request log": merged(
        given("enforcement", "client-quotas"), given("throttle.scope", "volume")
    ),
    "clientQuotaFloor is set, but the sidecar lowers no quotas": given("clientQuotaFloor", "1Mi"),
    "relief.mode is delete, but no topic is declared": given("relief.mode", "delete"),
    "strimzi.cluster is set, but Strimzi adds no container": merged(BESIDE_BROKER, STRIMZI),
    "strimzi.cluster brings its own TLS and login": merged(STRIMZI, {"tls": {"enabled": True}}),
    "tls.caSecret.name is set, but TLS is off": given("tls.caSecret.name", "x"),
    "tls.clientSecret.name is set, but TLS is off": given("tls.clientSecret.name", "x"),
    "apiTls.clientCaSecret.name is set, but the API has no TLS": given(
        "apiTls.clientCaSecret.name", "x"
    ),
    "apiTls.clientCaSecret.name is set, and brokers would be refused": given(
        "apiTls.clientCaSecret.name", "x", merged(PER_CLUSTER, API)
    ),
    "apiTls.clientCaSecret.name is set, and Prometheus would be refused": given(
        "monitoring.monitor", "PodMonitor", MUTUAL
    ),
    "callback.tlsSecret.name is set, but the API has no TLS": given("callback.tlsSecret.name", "x"),
    "monitoring.tlsConfig is set, but the metrics have no TLS": given(
        "monitoring.tlsConfig", {"insecureSkipVerify": True}
    ),
    "sasl.mechanism is set: set sasl.username": given("sasl.mechanism", "PLAIN"),
    "sasl.username or sasl.secret.name is set": given("sasl.username", "x"),
    "networkPolicy is for mode per-cluster": given("networkPolicy.enabled", True, BESIDE_BROKER),
    "a Service called sidecar-x gives the brokers' pods variables": merged(
        BESIDE_BROKER, {"besideBroker": {"service": True}, "fullnameOverride": "sidecar-x"}
    ),
    "replicas is 2, and they can't share a volume claim": given("replicas", 2),
    "state.existingClaim is set, but state.volumeClaim is false": given(
        "state", {"volumeClaim": False, "existingClaim": "old"}
    ),
    "podDisruptionBudget protects nothing with one replica": given(
        "podDisruptionBudget.enabled", True
    ),
    "the alert rules select sidecars by a job with throttle-sidecar": merged(
        MONITOR, {"fullnameOverride": "other"}
    ),
}
"""A part of the message -> the values."""


@pytest.mark.parametrize("message", CONTRADICTIONS)
def test_values_that_contradict_each_other_are_refused(message: str) -> None:
    """The message says which, and what to do."""
    with pytest.raises(RefusedError) as refused:
        render(CONTRADICTIONS[message])
    assert message in str(refused.value)
