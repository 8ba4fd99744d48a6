"""Isolates the brokers, so that nothing outlives the process that started them.

The best isolation is a mount and a pid namespace. Volumes are then real file systems (tmpfs) of a
fixed size, which no other process sees. When the namespace's first process ends, the kernel ends
all its other processes and removes the mounts. Root creates a namespace directly. Other users
create it inside a user namespace, if the machine allows that. If neither works, volumes are plain
folders. Each kind is tried, because versions and sysctls do not tell: containers refuse these calls
for many reasons.
"""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
_NAMESPACE = ("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL")
_USER_NAMESPACE = (*_NAMESPACE, "--user", "--map-root-user")
_PROBE_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Isolation:
    """How to start the process that runs the brokers.

    Attributes:
        name: "namespace", "user namespace" or "plain folders".
        prefix: the command that runs another command inside.
        has_mounts: whether tmpfs volumes can be mounted inside.
        why_not: for plain folders, one line that explains why the better kinds failed; else empty.
    """

    name: str
    prefix: tuple[str, ...]
    has_mounts: bool
    why_not: str = ""


def probe() -> Isolation:
    """Find the best isolation by trying each kind in turn; this takes about 20 ms."""
    problems = []
    for name, namespace in (("namespace", _NAMESPACE), ("user namespace", _USER_NAMESPACE)):
        if name == "namespace" and os.geteuid() != 0:
            continue
        prefix = (*_DIE_WITH_PARENT, *namespace, "--")
        problem = _try(prefix)
        if problem is None:
            return Isolation(name, prefix, has_mounts=True)
        problems.append(f"{name}: {problem}")
    # Even without a namespace, the child should end with its parent, if the machine supports it.
    prefix = _DIE_WITH_PARENT if _runs((*_DIE_WITH_PARENT, "true")) else ()
    return Isolation("plain folders", prefix, has_mounts=False, why_not="; ".join(problems))


def _try(prefix: tuple[str, ...]) -> str | None:
    """Try to mount a tmpfs inside; return None, or the last line of the failure."""
    missing = [tool for tool in ("setpriv", "unshare", "mount") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} not found (apt-get install -y util-linux mount)"
    with tempfile.TemporaryDirectory() as folder:
        command = (*prefix, "mount", "-t", "tmpfs", "-o", "size=4096", "tmpfs", folder)
        try:
            done = subprocess.run(  # noqa: S603 - constant words and our own temporary folder
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PROBE_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


def _runs(command: tuple[str, ...]) -> bool:
    try:
        return (
            subprocess.run(  # noqa: S603 - constant words
                command, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
