"""The containers of a pod as processes, as a kubelet would run them from what the API server has.

Theirs are the arguments, the variables, the user, the root that can't be written, the volumes, and
that they can gain no privilege. Not covered: the image (the tests' own Python takes its place), the
limits of memory and CPU, seccomp's profile, and the pod's network, which is the machine's: two pods
would share their ports, so each gets others by its settings.
"""

import base64
import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.helm.rendered import ROOT, Resource, named
from tests.deploy.kubernetes.api_server import ApiServer
from tests.integration.container import Image
from tests.support.mounted import MountedSecret

_OF_IMAGE = {
    "/usr": Path("/usr"),
    sys.base_prefix: Path(sys.base_prefix),
    "/project": ROOT,
    "/packages": Path(sysconfig.get_path("purelib")),
}
"""Where the image's program is, and what it needs."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the API server.

    Attributes:
        server: where it is.
        resource: as it is there.
        folder: for its volumes.
    """

    server: ApiServer
    resource: Resource
    folder: Path

    def command(self, name: str) -> list[str]:
        """What runs a container of our image, for root alone."""
        spec = self.resource["spec"]
        container = named([*spec.get("initContainers", []), *spec["containers"]], name)
        may = spec.get("securityContext", {}) | container["securityContext"]
        assert may["readOnlyRootFilesystem"]
        assert not may["allowPrivilegeEscalation"]
        assert {"drop": ["ALL"]} == may["capabilities"]
        assert not container.keys() & {"command", "workingDir"}, "not covered here"
        mounts = {
            each["mountPath"]: self._volume(named(spec["volumes"], each["name"]))
            for each in container["volumeMounts"]
        }
        image = Image(
            root=self._root([*_OF_IMAGE, *mounts]),
            config={
                "User": f"{may['runAsUser']}:{may['runAsGroup']}",
                "Env": ["PYTHONPATH=/project:/packages", "PYTHONDONTWRITEBYTECODE=1"],
            },
        )
        python = f"{sys.base_prefix}/bin/python3.{sys.version_info.minor}"
        words = [python, "-m", "sidecar", *container["args"]]
        return image.command(words, self._variables(container), _OF_IMAGE | mounts)

    def probes(self, name: str) -> dict[str, tuple[int, str]]:
        """What each probe of a container asks: kind -> the container's port and the path."""
        container = named(self.resource["spec"]["containers"], name)
        asked = {key: each["httpGet"] for key, each in container.items() if key.endswith("Probe")}
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        return {key: (ports[each["port"]], each["path"]) for key, each in asked.items()}

    def _root(self, folders: list[str]) -> Path:
        root = self.folder / "root"
        for each in ("proc", "dev", *folders):
            (root / each.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for each in ("bin", "sbin", "lib", "lib64"):
            if not (root / each).is_symlink():
                (root / each).symlink_to(f"usr/{each}")
        return root

    def _variables(self, container: Resource) -> dict[str, str]:
        variables: dict[str, str] = {}
        for each in container.get("envFrom", []):
            kind = {"configMapRef": "ConfigMap", "secretRef": "Secret"}[next(iter(each))]
            (reference,) = each.values()
            files = self._files(kind, reference["name"])
            variables |= {key: value.decode() for key, value in files.items()}
        for each in container.get("env", []):
            if "valueFrom" in each:
                _, field = each["valueFrom"]["fieldRef"]["fieldPath"].split(".")
                variables[each["name"]] = self.resource["metadata"][field]
            else:
                known = re.compile(r"\$\((\w+)\)")
                variables[each["name"]] = known.sub(lambda it: variables[it[1]], each["value"])
        return variables

    def _projected(self, sources: list[Resource]) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for each in sources:
            if token := each.get("serviceAccountToken"):
                account = self.resource["spec"]["serviceAccountName"]
                files[token["path"]] = self.server.token(
                    account, self.resource, token["expirationSeconds"]
                )
            elif "configMap" in each:
                there = self._files("ConfigMap", each["configMap"]["name"])
                items = each["configMap"]["items"]
                files |= {item["path"]: there[item["key"]] for item in items}
        return files

    def _volume(self, volume: Resource) -> Path:
        """Its folder, as the kubelet makes it; containers of a pod share it."""
        folder = self.folder / str(volume["name"])
        if folder.exists():
            return folder
        group = self.resource["spec"].get("securityContext", {}).get("fsGroup", 0)
        for key, kind, name in (
            ("secret", "Secret", "secretName"),
            ("configMap", "ConfigMap", "name"),
        ):
            if key in volume:
                source = volume[key]
                files = self._files(kind, source[name])
                MountedSecret(folder).holds(**files)
                for file in folder.glob("..?*/*"):
                    file.chmod(source["defaultMode"])
                    os.chown(file, 0, group)
                return folder
        if "projected" in volume:
            MountedSecret(folder).holds(**self._projected(volume["projected"]["sources"]))
            for file in folder.glob("..?*/*"):
                file.chmod(0o640)
                os.chown(file, 0, group)
            return folder
        folder.mkdir()
        folder.chmod(0o777 if "emptyDir" in volume else 0o2770)
        os.chown(folder, 0, group)
        return folder

    def _files(self, kind: str, name: str) -> dict[str, bytes]:
        there = self.server.get("v1", kind, name, self.resource["metadata"]["namespace"])
        data = there.get("data", {})
        if kind == "Secret":
            return {key: base64.b64decode(value) for key, value in data.items()}
        return {key: value.encode() for key, value in data.items()}
