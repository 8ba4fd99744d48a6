"""Kubernetes' own API server with etcd, on the loopback address.

Nothing else of a cluster runs: no controller makes pods of a Deployment or cleans up after what is
removed. What is sent is admitted or refused as on a cluster, and then stays as it is.
"""

import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import trustme

from kafka_lab.ports import Ports
from tests.deploy.helm.rendered import OURS, Resource, Values, helm
from tests.support.waiting import seen

_TOKEN = "administrator"
_READY_S = 150.0
"""A busy machine starts it in half a minute."""


class NotTakenError(Exception):
    """The API server does not take a resource, and says why."""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running one.

    Attributes:
        client: its administrator's connection.
        folder: its files, with a kubeconfig.
    """

    client: httpx.Client
    folder: Path

    def helm(
        self, namespace: str, command: str, *words: str | Path, values: Values | None = None
    ) -> str:
        """Run a command of Helm, such as "get manifest", for the release of a namespace."""
        to = ("--namespace", namespace, "--kubeconfig", self.folder / "kubeconfig")
        given = () if values is None else ("--values", "-")
        return helm(
            *(*command.split(), OURS, *words, *to, *given),
            given=json.dumps(values),
            # Where Helm remembers what a server has; a later one may have the same port.
            environ={"KUBECACHEDIR": str(self.folder / "kube-cache")},
        )

    def create(self, resource: Resource, namespace: str = "", *, dry_run: bool = False) -> Resource:
        """Create it, or only try to; a field that there is not is a mistake, too.

        Returns:
            The resource as it is then, with all defaults.
        """
        params = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        folder = self._folder(resource["apiVersion"], resource["kind"], namespace)
        return _taken(self.client.post(folder, json=resource, params=params))

    def patch(self, target: Resource, how: str, changes: Any, namespace: str) -> Resource:
        """Patch a resource, as strictly: how is "merge-patch" or another of Kubernetes' kinds."""
        folder = self._folder(target["apiVersion"], target["kind"], namespace)
        return _taken(
            self.client.patch(
                f"{folder}/{target['metadata']['name']}",
                content=json.dumps(changes),
                params={"fieldValidation": "Strict"},
                headers={"Content-Type": f"application/{how}+json"},
            )
        )

    def get(self, api_version: str, kind: str, name: str, namespace: str) -> Resource:
        """A resource that is there."""
        path = f"{self._folder(api_version, kind, namespace)}/{name}"
        return dict(self.client.get(path).raise_for_status().json())

    def find(self, api_version: str, kind: str, name: str, namespace: str) -> Resource | None:
        """A resource that may be there; None if it is not."""
        path = f"{self._folder(api_version, kind, namespace)}/{name}"
        answer = self.client.get(path)
        return None if answer.status_code == httpx.codes.NOT_FOUND else dict(answer.json())

    def token(self, account: str, pod: Resource, lasts_s: int) -> bytes:
        """A token of a service account for a pod, as the kubelet asks for it."""
        its = pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": its["name"], "uid": its["uid"]}
        folder = self._folder("v1", "ServiceAccount", its["namespace"])
        request = {"spec": {"expirationSeconds": lasts_s, "boundObjectRef": bound}}
        answer = _taken(self.client.post(f"{folder}/{account}/token", json=request))
        return str(answer["status"]["token"]).encode()

    def events(self, pod: Resource) -> list[Resource]:
        """What "kubectl describe pod" lists, by its selector."""
        its = pod["metadata"]
        about = {"name": its["name"], "namespace": its["namespace"], "uid": its["uid"]}
        selector = ",".join(f"involvedObject.{key}={value}" for key, value in about.items())
        folder = self._folder("v1", "Event", its["namespace"])
        answer = self.client.get(folder, params={"fieldSelector": selector})
        return list(answer.raise_for_status().json()["items"])

    def complete(self, job: Resource, namespace: str) -> None:
        """Let a Job have succeeded, as its controller does after its pod."""
        now = job["metadata"]["creationTimestamp"]
        reached = [{"type": each, "status": "True"} for each in ("SuccessCriteriaMet", "Complete")]
        status = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": reached}
        folder = self._folder(job["apiVersion"], job["kind"], namespace)
        _taken(
            self.client.patch(
                f"{folder}/{job['metadata']['name']}/status",
                content=json.dumps({"status": status}),
                headers={"Content-Type": "application/merge-patch+json"},
            )
        )

    async def remove(self, resource: Resource, namespace: str = "") -> None:
        """Remove it; returns when it is gone."""
        folder = self._folder(resource["apiVersion"], resource["kind"], namespace)
        path = f"{folder}/{resource['metadata']['name']}"
        self.client.delete(path).raise_for_status()
        await seen(f"no {path}", lambda: self.client.get(path).status_code == httpx.codes.NOT_FOUND)

    def inventory(self, namespace: str) -> set[str]:
        """Everything in a namespace but events, as "kind/name".

        The API server writes events itself, such as when it checks its services every 3 minutes.
        """
        groups = self.client.get("/apis").raise_for_status().json()["groups"]
        found = set()
        for version in ("v1", *(each["preferredVersion"]["groupVersion"] for each in groups)):
            for kind in self._kinds(version):
                if kind["namespaced"] and "list" in kind["verbs"] and kind["kind"] != "Event":
                    listed = self.client.get(self._folder(version, kind["kind"], namespace))
                    items = listed.raise_for_status().json()["items"]
                    found |= {f"{kind['kind']}/{each['metadata']['name']}" for each in items}
        return found

    async def define(self, crd: Resource) -> None:
        """Create a CRD; returns when there can be resources of it."""
        self.create(crd)
        spec = crd["spec"]
        paths = [
            f"{_root(spec['group'] + '/' + each['name'])}/{spec['names']['plural']}"
            for each in spec["versions"]
            if each["served"]
        ]
        name = crd["metadata"]["name"]
        await seen(name, lambda: all(self.client.get(path).is_success for path in paths))

    def _folder(self, api_version: str, kind: str, namespace: str) -> str:
        known = {each["kind"]: each for each in self._kinds(api_version)}
        if kind not in known:
            raise NotTakenError(f"there is no {kind} in {api_version}")
        inside = f"/namespaces/{namespace}" if known[kind]["namespaced"] else ""
        return f"{_root(api_version)}{inside}/{known[kind]['name']}"

    def _kinds(self, api_version: str) -> list[Resource]:
        answer = self.client.get(_root(api_version))
        kinds = [] if answer.is_error else answer.json()["resources"]
        return [each for each in kinds if "/" not in each["name"]]


@asynccontextmanager
async def api_server(folder: Path) -> AsyncIterator[ApiServer]:
    """Run one; its data, keys and logs are in the folder."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate = ca.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "certificate.pem"))
    (folder / "tokens.csv").write_text(f"{_TOKEN},admin,admin,system:masters\n")
    with ExitStack() as stack:
        ports = stack.enter_context(Ports())
        etcd, peers, port = (ports.reserve() for _ in range(3))
        url = f"https://127.0.0.1:{port}"
        running = [
            stack.enter_context(_running(words, folder / f"{Path(words[0]).name}.log"))
            for words in (_etcd(folder, etcd, peers), _server(folder, etcd, port))
        ]
        client = stack.enter_context(
            httpx.Client(
                base_url=url,
                headers={"Authorization": f"Bearer {_TOKEN}"},
                verify=_trusting(ca),
                timeout=30,
            )
        )

        def is_ready() -> bool:
            for each, log in running:
                assert each.poll() is None, log.read_text("utf-8")[-4000:]
            try:
                return client.get("/readyz").is_success
            except httpx.TransportError:
                return False

        await seen("a ready API server", is_ready, timeout_s=_READY_S)
        (folder / "kubeconfig").touch(0o600)  # Helm warns of others that may read it
        (folder / "kubeconfig").write_text(json.dumps(_kubeconfig(url, folder / "ca.pem")))
        yield ApiServer(client, folder)


def _taken(answer: httpx.Response) -> Resource:
    if answer.is_error:
        raise NotTakenError(answer.json()["message"])
    return dict(answer.json())


def _etcd(folder: Path, port: int, peers: int) -> list[str]:
    here, between = (f"http://127.0.0.1:{each}" for each in (port, peers))
    return [
        _program("etcd", "tools/prerequisites etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        f"--listen-peer-urls={between}",
        f"--initial-advertise-peer-urls={between}",
        f"--initial-cluster=default={between}",
    ]


def _server(folder: Path, etcd: int, port: int) -> list[str]:
    return [
        _program("kube-apiserver", "make .venv/bin/kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={folder / 'certificate.pem'}",
        f"--tls-private-key-file={folder / 'key.pem'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--enable-admission-plugins=PodSecurity",
        # What removes its finalizer from a volume claim is a controller.
        "--disable-admission-plugins=StorageObjectInUseProtection",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'key.pem'}",
        f"--service-account-signing-key-file={folder / 'key.pem'}",
    ]


def _program(name: str, command: str) -> str:
    # What the Makefile builds is beside Python.
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which(name, path=folders)
    assert found is not None, f"{name} is missing: {command}"
    return found


@contextmanager
def _running(words: Sequence[str], log: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Runs a program with the test, and ends it also when the test is killed."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *words], stdout=output, stderr=output
        )
    try:
        yield process, log
    finally:
        process.kill()
        process.wait()


def _trusting(ca: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    ca.configure_trust(context)
    return context


def _kubeconfig(url: str, ca: Path) -> Resource:
    named = {"cluster": "test", "user": "admin"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": url, "certificate-authority": str(ca)}}
        ],
        "users": [{"name": "admin", "user": {"token": _TOKEN}}],
        "contexts": [{"name": "test", "context": named}],
        "current-context": "test",
    }


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
