"""The Dockerfile's image, built without a registry, and run as hardened as an operator can ask for.

Built by buildah with chroot isolation, which needs no daemon and no container inside a container.
Run without it: in a mount and a pid namespace of its own, on a root file system that can't be
written, as the image's user, without a shell, without a capability, and can't gain any; on the
machine's network.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sidecar.cli.callback.jar import callback_jar
from tests.integration.debian import DEBIANS_PYTHON, ROOT, debian, wheels

REVISION: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The commit that the build gets as its argument."""

_BUILD_S: Final = 350.0

_RUN: Final = """
set -e
root=$1
shift
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
    mount --bind "${1%%:*}" "$root/${1#*:}"
    shift
done
shift
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev"
for each in null urandom; do
    touch "$root/dev/$each"
    mount --bind "/dev/$each" "$root/dev/$each"
done
mount -o remount,ro "$root/dev"
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Image:
    """An image, unpacked.

    Attributes:
        root: its files.
        config: as Docker has it: User, Env, Entrypoint, Cmd, Healthcheck, Labels.
    """

    root: Path
    config: Mapping[str, Any]

    def command(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        volumes: Mapping[str, Path] | None = None,
    ) -> list[str]:
        """What runs a program in it.

        Args:
            words: the program and its arguments.
            environ: besides the image's own variables.
            volumes: folders in the image, and what is seen there.
        """
        user = self.config["User"]
        variables = [*self.config["Env"], *(f"{key}={value}" for key, value in environ.items())]
        mounts = [f"{path}:{where}" for where, path in (volumes or {}).items()]
        namespace = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        bare = ("setpriv", "--no-new-privs", "env", "--ignore-environment", *variables)
        inside = ("/usr/sbin/chroot", f"--userspec={user}", "--groups=", str(self.root))
        shut_in = ("sh", "-c", _RUN, "sh", str(self.root), *mounts, "--")
        return [*namespace, *shut_in, *bare, *inside, *words]

    def run(self, *words: str, volumes: Mapping[str, Path]) -> subprocess.CompletedProcess[str]:
        """Run its entry point with these words."""
        return self.start_and_wait([*self.config["Entrypoint"], *words], volumes=volumes)

    def start_and_wait(
        self,
        words: Sequence[str],
        environ: Mapping[str, str] | None = None,
        volumes: Mapping[str, Path] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run any program of it."""
        command = self.command(words, environ or {}, volumes)
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def first_in(namespace: "subprocess.Popen[bytes]") -> int:
    """The first process that an unshare has started in its pid namespace."""
    return _children(namespace)[0]


def end(namespace: "subprocess.Popen[bytes]") -> None:
    """Kill an unshare and its namespace: a change of the user undoes its --kill-child."""
    if namespace.poll() is None:
        for each in _children(namespace):
            os.kill(each, signal.SIGKILL)
    namespace.kill()
    namespace.wait()


def _children(namespace: "subprocess.Popen[bytes]") -> list[int]:
    listed = Path(f"/proc/{namespace.pid}/task/{namespace.pid}/children").read_text()
    return [int(each) for each in listed.split()]


class Buildah:
    """A buildah whose images and containers are in a folder of their own.

    Attributes:
        command: what calls it.
        options: of a build of the Dockerfile that needs no registry.
    """

    def __init__(self, folder: Path, machines: Sequence[str] = ("",)) -> None:
        """Build the base image.

        Args:
            folder: for temporary files; empty.
            machines: those to build for, such as aarch64; by default this one.
        """
        storage = ("--root", str(folder / "root"), "--runroot", str(folder / "run"))
        self.command = ("buildah", *storage, "--storage-driver", "vfs")
        base = folder / "Dockerfile"
        base.write_text("FROM scratch\nCOPY . /\n")
        build = ("build", "--quiet", "--isolation", "chroot", "--file", str(base))
        self(*build, "--tag", "localhost/base", str(debian()))
        pip = folder / "pip.conf"
        places = {f"/wheels{machine}": wheels(DEBIANS_PYTHON, machine) for machine in machines}
        pip.write_text(f"[global]\nno-index = true\nfind-links = {' '.join(places)}\n")
        mounts = [word for at, where in places.items() for word in ("--volume", f"{where}:{at}:ro")]
        secret = ("--secret", f"id=pip.conf,src={pip}")
        self.options = ("--build-arg", "BASE=localhost/base", *secret, *mounts)

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            [*self.command, *words],
            capture_output=True,
            text=True,
            timeout=_BUILD_S,
            check=False,
        )
        assert 0 == done.returncode, f"buildah {words[0]}: {done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def built(folder: Path) -> Iterator[Image]:
    """Builds the Dockerfile's image with the jar of ``make jar``; removed at the end.

    Args:
        folder: for temporary files; empty.
    """
    buildah = Buildah(folder)
    # --format: without it the image is an OCI one, which has no HEALTHCHECK.
    buildah(
        *("build", "--quiet", "--isolation", "chroot", "--format", "docker", *buildah.options),
        *("--build-arg", f"REVISION={REVISION}"),
        *("--build-context", f"callback={callback_jar().parent}"),
        *("--tag", "localhost/throttle-sidecar", str(ROOT)),
    )
    document = json.loads(buildah("inspect", "--type", "image", "localhost/throttle-sidecar"))
    container = buildah("from", "--pull-never", "localhost/throttle-sidecar").strip()
    try:
        yield Image(
            root=Path(buildah("mount", container).strip()),
            config=document["Docker"]["config"],
        )
    finally:
        buildah("rm", "--all")
        buildah("rmi", "--all", "--force")
