"""What the chart says is what runs: the pods of a real API server, on a real broker with TLS."""

import asyncio
import base64
import itertools
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from kafka_lab.admin import Admin
from kafka_lab.cluster import Cluster
from kafka_lab.ports import Ports
from kafka_lab.traffic import Traffic
from sidecar.cli.callback.jar import NAME, callback_jar
from sidecar.quotas.entities import DEFAULT, ClientQuotas, Entity
from tests.deploy.helm.patched import example
from tests.deploy.helm.rendered import (
    BESIDE_BROKER,
    CHART,
    OURS,
    STRIMZI,
    Resource,
    Values,
    merged,
    named,
)
from tests.deploy.kubernetes.api_server import ApiServer, api_server
from tests.deploy.kubernetes.schemas import strimzi_crd
from tests.integration.container import end, first_in
from tests.integration.pods import Pod
from tests.support.client_quotas import quotas_of, under
from tests.support.command import run
from tests.support.daemon import FULL_BYTES
from tests.support.secured import SCRAM, SecureKafka
from tests.support.waiting import SEEN_S, seen

pytestmark = [
    pytest.mark.helm,
    pytest.mark.timeout(400),  # the API server and the broker start in the first test
    pytest.mark.skipif(os.geteuid() != 0, reason="other users and mounts need root"),
]

TOKEN = {"tokenSecret": {"name": "token"}}
NUMBERS = itertools.count(1)
"""Of namespaces, which nothing here can remove."""
LITTLE = {"limit": {"minAvailableRatio": 0.1}}
MUCH: Values = {
    "limit": {"minAvailableRatio": 0.6},
    # The volume is so small that every leak would be an emergency.
    "settings": {
        "SIDECAR_STORAGE_CHECK_INTERVAL": "PT1S",
        "SIDECAR_THROTTLE_EMERGENCY_HORIZON": "PT0.001S",
    },
}
"""A limit that FULL_BYTES violate on the volume, seen soon."""
URL = "client.quota.callback.sidecar.url"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiServer]:
    async with api_server(tmp_path_factory.mktemp("kubernetes")) as server:
        # In a thread, which may have a loop of its own for Maven.
        await server.define(await asyncio.to_thread(strimzi_crd, "KafkaUser", "1.2"))
        yield server


@pytest.fixture
def namespace(kubernetes: ApiServer, secure_kafka: SecureKafka) -> str:
    """One with the Secrets that operators or Strimzi create."""
    name = f"kafka-{next(NUMBERS)}"
    kubernetes.create(core("Namespace", name))
    kubernetes.create(core("ServiceAccount", "default"), name)
    ca = secure_kafka.ca_file.read_bytes()
    certificate = secure_kafka.client_certificate_file.read_bytes()
    key = secure_kafka.client_key_file.read_bytes()
    secrets: dict[str, dict[str, bytes]] = {
        "my-cluster-cluster-ca-cert": {"ca.crt": ca},
        OURS: {"user.crt": certificate, "user.key": key},
        "ca": {"ca.crt": ca},
        "client": {"tls.crt": certificate, "tls.key": key},
        "login": {"password": secure_kafka.password.encode()},
        "token": {"token": b"t0k3n"},
        "more": {"SIDECAR_STORAGE_CHECK_INTERVAL": b"PT1S"},
    }
    for secret, files in secrets.items():
        data = {file: base64.b64encode(content).decode() for file, content in files.items()}
        kubernetes.create(core("Secret", secret, data=data), name)
    kubernetes.create(core("ConfigMap", "trusted", data={"ca.crt": ca.decode()}), name)
    return name


@pytest.fixture
def listens() -> Iterator[Mapping[int, str]]:
    """A port of the container -> the address that is asked in its place."""
    with Ports() as ports:
        yield {port: f"127.0.0.1:{ports.reserve()}" for port in (7070, 7071)}


def on(listens: Mapping[int, str]) -> Values:
    """Values by which the sidecar listens there."""
    addresses = {"SIDECAR_HTTP_LISTEN": listens[7070], "SIDECAR_METRICS_LISTEN": listens[7071]}
    return {"settings": addresses}


def core(kind: str, name: str, **more: object) -> Resource:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def pod_of(server: ApiServer, controller: Resource, namespace: str, folder: Path) -> Pod:
    """The pod that a Deployment or a StatefulSet of the server would make."""
    template = controller["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod"} | template
    pod["metadata"] = {**template["metadata"], "name": "pod-0"}
    for claim in controller["spec"].get("volumeClaimTemplates", []):
        its = claim["metadata"]["name"]
        source = {"persistentVolumeClaim": {"claimName": f"{its}-pod-0"}}
        pod["spec"]["volumes"].append({"name": its, **source})
    server.create(pod, namespace)
    (folder / "pod").mkdir()
    return Pod(server, server.get("v1", "Pod", "pod-0", namespace), folder / "pod")


@contextmanager
def running(pod: Pod, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs the container of the daemon, and ends it if it has not ended."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(pod.command(OURS), stdout=log, stderr=log)
    try:
        yield process
    finally:
        end(process)


async def sees_and_ends(pod: Pod, listens: Mapping[int, str], folder: Path) -> None:
    """Its probes succeed, it decides by what the broker says, and it ends in its time."""
    log = folder / "log"
    api = httpx.AsyncClient(base_url=f"http://{listens[7070]}", timeout=SEEN_S, verify=False)
    with running(pod, folder) as process:
        async with api:

            async def succeed(urls: Collection[str]) -> bool:
                assert process.poll() is None, log.read_text()
                try:
                    return all([(await api.get(url)).is_success for url in urls])
                except httpx.TransportError:
                    return False

            probes = pod.probes(OURS)
            asked = [f"http://{listens[port]}{path}" for port, path in probes.values()]
            await seen(f"success of {probes}", lambda: succeed(asked))
            await seen("a decision", log.read_text, lambda text: "(observation)" in text)
            assert 1.0 == (await api.get("/v1/throttle-factor")).json()["factor"]
            override = {"factor": 0.5, "reason": "a test", "duration": "PT1M"}
            assert 401 == (await api.put("/v1/override", json=override)).status_code
            allowed = {"Authorization": "Bearer t0k3n"}
            answer = await api.put("/v1/override", json=override, headers=allowed)
            assert 200 == answer.status_code, answer.text
        os.kill(first_in(process), signal.SIGTERM)
        assert 0 == await asyncio.to_thread(process.wait, SEEN_S), log.read_text()
    state = pod.folder / "throttle-sidecar-state" / "state.json"
    assert '"a test"' in state.read_text()


@asynccontextmanager
async def obeys(cluster: Cluster, properties: Mapping[str, str], jar: Path) -> AsyncIterator[None]:
    """The broker runs with these properties and the jar, and then as before."""
    cluster.configure(properties, broker_jars=[jar])
    try:
        await cluster.stop_broker(0)
        await cluster.start_broker(0)
        yield
    finally:
        await cluster.heal()
        cluster.configure()
        await cluster.stop_broker(0)
        await cluster.start_broker(0)


async def a_producer_waits(
    pod: Pod, cluster: Cluster, listens: Mapping[int, str], folder: Path
) -> None:
    """While a volume violates the limit, and not before; the broker reads the pod's sidecar."""
    topic, log = f"first-{pod.resource['metadata']['namespace']}", folder / "log"
    with running(pod, folder) as process:
        async with httpx.AsyncClient(base_url=f"http://{listens[7070]}", timeout=SEEN_S) as api:

            async def obeyed(factor: float) -> bool:
                assert process.poll() is None, log.read_text()
                try:
                    decided = (await api.get("/v1/throttle-factor")).json()
                    read = (await api.get("/v1/readers")).json()
                except httpx.TransportError:
                    return False
                if ("observation", factor) != (decided["source"], decided["factor"]):
                    return False
                return [read["generation"]] == [each["generation"] for each in read["readers"]]

            await seen("a reader of 1.0", lambda: obeyed(1.0))
            async with Admin(cluster.bootstrap) as admin:
                await admin.create_topic(topic)
            async with Traffic(cluster.bootstrap, topic, bytes_per_s=1e6) as traffic:
                await seen("records", lambda: traffic.acknowledged_bytes)
                assert 0.0 == traffic.longest_throttle_s
                await cluster.occupy(0, 0, FULL_BYTES)
                await seen("a reader of 0.0", lambda: obeyed(0.0))
                await seen("a producer that waits", lambda: traffic.longest_throttle_s)
            await cluster.heal()
            # The broker retains its last answer for its next start.
            await seen("a reader of the release", lambda: obeyed(1.0))


OF_CLUSTER: Mapping[str, tuple[str, Values]] = {
    "mutual TLS": (
        "MTLS",
        {
            "tls": {
                "enabled": True,
                "caSecret": {"name": "ca"},
                "clientSecret": {"name": "client"},
            },
            "settingsSecret": "more",
        },
    ),
    "SCRAM over TLS": (
        "SCRAM",
        {
            "tls": {"enabled": True, "caSecret": {"name": "ca"}},
            "sasl": {"mechanism": SCRAM, "username": "alice", "secret": {"name": "login"}},
        },
    ),
    "Strimzi's Secrets": ("MTLS", STRIMZI),
    "a CA in a ConfigMap": (
        "SCRAM",
        {
            "tls": {"enabled": True},
            "sasl": {"mechanism": SCRAM, "username": "alice", "secret": {"name": "login"}},
            "settings": {"SIDECAR_KAFKA_ADMIN_SSL_TRUSTSTORE_LOCATION": "/trusted/ca.crt"},
            "extraVolumes": [{"name": "trusted", "configMap": {"name": "trusted"}}],
            "extraVolumeMounts": [{"name": "trusted", "mountPath": "/trusted"}],
        },
    ),
}


@pytest.mark.parametrize("name", OF_CLUSTER)
async def test_the_pod_of_the_deployment_sees_the_broker(
    kubernetes: ApiServer,
    secure_kafka: SecureKafka,
    namespace: str,
    listens: Mapping[int, str],
    *,
    name: str,
    tmp_path: Path,
) -> None:
    """With each way to log in, as its user alone, on a root that it can't write."""
    listener, way = OF_CLUSTER[name]
    bootstrap = {"bootstrapServers": secure_kafka.cluster.bootstrap_of(listener)}
    values = merged(merged(LITTLE, way), merged(TOKEN, merged(bootstrap, on(listens))))
    kubernetes.helm(namespace, "install", CHART, values=values)
    deployment = kubernetes.get("apps/v1", "Deployment", OURS, namespace)
    await sees_and_ends(pod_of(kubernetes, deployment, namespace, tmp_path), listens, tmp_path)


@pytest.mark.parametrize("name", ["SCRAM over TLS", "Strimzi's Secrets"])
async def test_with_what_the_notes_say_a_producer_waits(
    kubernetes: ApiServer,
    secure_kafka: SecureKafka,
    namespace: str,
    listens: Mapping[int, str],
    *,
    name: str,
    tmp_path: Path,
) -> None:
    """The README's rows Kubernetes and Strimzi: the broker has the ConfigMap's properties.

    The Service's address in them is replaced by the pod's, because nothing here resolves its name.
    """
    listener, way = OF_CLUSTER[name]
    cluster = secure_kafka.cluster
    bootstrap = {"bootstrapServers": cluster.bootstrap_of(listener)}
    values = merged(merged(way, MUCH), merged(bootstrap, on(listens)))
    kubernetes.helm(namespace, "install", CHART, values=values)
    deployment = kubernetes.get("apps/v1", "Deployment", OURS, namespace)
    pod = pod_of(kubernetes, deployment, namespace, tmp_path)
    notes = kubernetes.get("v1", "ConfigMap", f"{OURS}-brokers", namespace)["data"]
    if "patch.yaml" in notes:
        properties = yaml.safe_load(notes["patch.yaml"])["spec"]["kafka"]["config"]
    else:
        lines = notes["broker.properties"].split()
        properties = dict(line.split("=", 1) for line in lines)
    service = kubernetes.get("v1", "Service", OURS, namespace)["spec"]
    assert service["selector"].items() <= pod.resource["metadata"]["labels"].items()
    assert f"http://{OURS}.{namespace}.svc:{service['ports'][0]['port']}" == properties[URL]
    properties |= {URL: f"http://{listens[7070]}"}
    async with obeys(cluster, properties, callback_jar()):
        await a_producer_waits(pod, cluster, listens, tmp_path)


async def test_the_patched_pod_copies_the_jar_and_sees_the_broker(
    kubernetes: ApiServer,
    secure_kafka: SecureKafka,
    namespace: str,
    listens: Mapping[int, str],
    tmp_path: Path,
) -> None:
    """Beside a broker: the init container first, then the sidecar, from the StatefulSet.

    The broker runs with the jar's copy and the patch's variables, and a producer waits.
    """
    bootstrap = {"bootstrapServers": secure_kafka.cluster.bootstrap_of("MTLS")}
    way = merged(merged(BESIDE_BROKER, OF_CLUSTER["mutual TLS"][1]), MUCH)
    values = merged(way, merged(TOKEN, merged(bootstrap, on(listens))))
    kubernetes.helm(namespace, "install", CHART, values=values)
    kubernetes.create(example("StatefulSet"), namespace)
    notes = kubernetes.get("v1", "ConfigMap", f"{OURS}-brokers", namespace)
    patch = yaml.safe_load(notes["data"]["patch.yaml"])
    brokers = kubernetes.patch(patch, "strategic-merge-patch", patch, namespace)
    pod = pod_of(kubernetes, brokers, namespace, tmp_path)
    done = await run(pod.command("throttle-sidecar-callback"))
    assert 0 == done.code, done.said
    copied = pod.folder / "throttle-sidecar-callback" / NAME
    assert callback_jar().read_bytes() == copied.read_bytes()
    container = named(patch["spec"]["template"]["spec"]["containers"], "kafka")
    # As the images of Apache and Confluent read them. By default the callback asks port 7070.
    properties = {
        each["name"].removeprefix("KAFKA_").lower().replace("_", "."): each["value"]
        for each in container["env"]
        if each["name"].startswith("KAFKA_")
    }
    properties |= {URL: f"http://{listens[7070]}"}
    async with obeys(secure_kafka.cluster, properties, copied):
        await a_producer_waits(pod, secure_kafka.cluster, listens, tmp_path)
    await sees_and_ends(pod, listens, tmp_path)


@pytest.mark.parametrize("may", [True, False], ids=["with the Role", "without it"])
async def test_the_pod_has_events_of_the_throttle(
    kubernetes: ApiServer,
    secure_kafka: SecureKafka,
    namespace: str,
    listens: Mapping[int, str],
    *,
    may: bool,
    tmp_path: Path,
) -> None:
    """They are where kubectl looks; without the right, the log says so, and the throttle stays."""
    listener, way = OF_CLUSTER["SCRAM over TLS"]
    own = {
        "bootstrapServers": secure_kafka.cluster.bootstrap_of(listener),
        "limit": {"minAvailableRatio": 0.9999},
        "kubernetesEvents": True,
        "settings": {"SIDECAR_KUBERNETES_URL": str(kubernetes.client.base_url)},
    }
    # A controller puts it into each namespace.
    ca = (kubernetes.folder / "ca.pem").read_text()
    kubernetes.create(core("ConfigMap", "kube-root-ca.crt", data={"ca.crt": ca}), namespace)
    values = merged(merged(way, own), merged(TOKEN, on(listens)))
    kubernetes.helm(namespace, "install", CHART, values=values)
    if not may:
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
        await kubernetes.remove({**binding, "metadata": {"name": OURS}}, namespace)
    deployment = kubernetes.get("apps/v1", "Deployment", OURS, namespace)
    pod = pod_of(kubernetes, deployment, namespace, tmp_path)
    log = tmp_path / "log"

    def events() -> list[tuple[str, str, str]]:
        assert process.poll() is None, log.read_text()
        return sorted(
            (each["type"], each["reason"], each["source"]["component"])
            for each in kubernetes.events(pod.resource)
        )

    throttled = ("Warning", "KafkaProducersThrottled", OURS)
    async with httpx.AsyncClient(base_url=f"http://{listens[7070]}", timeout=SEEN_S) as api:
        with running(pod, tmp_path) as process:
            if may:
                await seen("an event of the throttle", events, lambda them: [throttled] == them)
                override = {"factor": 1.0, "reason": "a test", "duration": "PT1M"}
                allowed = {"Authorization": "Bearer t0k3n"}
                answer = await api.put("/v1/override", json=override, headers=allowed)
                assert answer.is_success, answer.text
                released = ("Normal", "KafkaProducersThrottled", OURS)
                overridden = ("Warning", "KafkaThrottleOverride", OURS)
                three = [released, throttled, overridden]
                await seen("events of the override", events, lambda them: three == them)
            else:
                needs = "bind a Role with the verb create on the resource events"
                await seen("what to grant", log.read_text, lambda text: needs in text)
                assert 0.0 == (await api.get("/v1/throttle-factor")).json()["factor"]
                metrics = (await api.get(f"http://{listens[7071]}/metrics")).text
                assert 'kafka_throttle_kubernetes_events_total{result="failed"} 1.0' in metrics
                assert [] == events()


KEY = "producer_byte_rate"
ALICE, REST = Entity("alice"), Entity(client_id=DEFAULT)
LOWERED: ClientQuotas = {
    ALICE: {KEY: 8559249.0},
    Entity("throttle-sidecar.before:alice"): {KEY: 1e7},
    REST: {KEY: 5982258.0},
    Entity(client_id="throttle-sidecar.without-default"): {KEY: 3e6},
}


async def test_after_the_deployment_a_job_restores_the_quotas(
    kubernetes: ApiServer,
    secure_kafka: SecureKafka,
    namespace: str,
    listens: Mapping[int, str],
    tmp_path: Path,
) -> None:
    """Helm waits for it, with the release's settings, and then nothing is left."""
    before = kubernetes.inventory(namespace)
    listener, way = OF_CLUSTER["SCRAM over TLS"]
    own: Values = {
        "bootstrapServers": secure_kafka.cluster.bootstrap_of(listener),
        "enforcement": "client-quotas",
    }
    kubernetes.helm(
        namespace, "install", CHART, values=merged(merged(LITTLE, way), merged(own, on(listens)))
    )
    async with Admin(secure_kafka.cluster.bootstrap) as admin:
        for right in ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"):
            await admin.allow("alice", right, "BROKER", "kafka-cluster")
    async with under(secure_kafka.cluster, LOWERED):
        removal = asyncio.create_task(asyncio.to_thread(kubernetes.helm, namespace, "uninstall"))
        name = f"{OURS}-uninstall"
        job = await seen("the Job", lambda: kubernetes.find("batch/v1", "Job", name, namespace))
        assert job is not None
        assert kubernetes.find("apps/v1", "Deployment", OURS, namespace) is None
        pod = pod_of(kubernetes, job, namespace, tmp_path)
        done = await run(pod.command(OURS))
        assert 0 == done.code, done.said
        assert "user 'alice': restored to 10000000" in done.out
        assert {ALICE: {KEY: 1e7}} == await quotas_of(secure_kafka.cluster)
        assert not removal.done()
        kubernetes.complete(job, namespace)
        await removal
    # No controller removes the pod with its Job.
    assert {"Pod/pod-0"} == kubernetes.inventory(namespace) - before
