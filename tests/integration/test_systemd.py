"""The systemd unit, by systemd's own tools, and run by a systemd in namespaces of its own."""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from sidecar.settings import describe
from tests.docs.blocks import blocks
from tests.integration.container import end
from tests.support.waiting import seen

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "throttle-sidecar.service"
PROJECT = UNIT.parents[2]
EXPOSED = 11
"""The most that its exposure may be, of 100: a program in the network has 8 at least."""


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=30
    )


def directives(name: str) -> list[str]:
    """The values of a key, in the order of the file."""
    lines = UNIT.read_text().splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith(f"{name}=")]


def verified(unit: Path) -> subprocess.CompletedProcess[str]:
    return analyze("verify", "--man=no", str(unit))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The unit as it is on a machine that has the program."""
    (command,) = directives("ExecStart")
    program = tmp_path / "throttle-sidecar"
    program.touch(0o755)
    text = UNIT.read_text().replace(command.split()[0], str(program))
    (tmp_path / UNIT.name).write_text(text)
    return tmp_path / UNIT.name


def test_systemd_knows_each_key_and_value(here: Path) -> None:
    """It says nothing; of a key that it doesn't know it would."""
    done = verified(here)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    here.write_text(here.read_text().replace("ProtectHome=", "ProtectHouse="))
    assert "'ProtectHouse'" in verified(here).stderr


def test_it_is_shut_in() -> None:
    """Nearly all that systemd can take from a program that needs the network is taken."""
    done = analyze("security", "--offline=yes", f"--threshold={EXPOSED}", str(UNIT))
    assert 0 == done.returncode, done.stdout


def test_what_it_sets_are_settings() -> None:
    """Their names are those that the program knows."""
    named = {value.partition("=")[0] for value in directives("Environment")}
    assert {"SIDECAR_STATE_FILE", "SIDECAR_TOKEN_FILE"} == named
    assert named <= {row.environment for row in describe()}


BOOT = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir -p dev etc/throttle-sidecar local old opt/packages opt/project opt/python proc root run sys \\
    tmp units usr var/lib var/log
for each in bin lib lib64 sbin; do ln -s "usr/$each" "$each"; done
cp /etc/passwd /etc/group etc/
cp "$4/deploy/systemd/throttle-sidecar.service" units/
# Its log, and nothing else that a machine starts.
for each in .service .socket -dev-log.socket; do
    cp "/lib/systemd/system/systemd-journald$each" units/
done
for each in basic network-online shutdown sysinit; do
    printf '[Unit]\\nDefaultDependencies=no\\nWants=systemd-journald.service\\n' >units/$each.target
done
echo t0k3n >etc/throttle-sidecar/token
echo "$5" >etc/throttle-sidecar/sidecar.toml
cat >local/throttle-sidecar <<'END'
#!/bin/sh
export PYTHONHOME=/opt/python LD_LIBRARY_PATH=/opt/python/lib PYTHONPATH=/opt/project:/opt/packages
exec /opt/python/bin/python3 -m sidecar "$@"
END
chmod 755 . local/throttle-sidecar
mount -t proc proc proc
# Otherwise it could change the machine's kernel.
mount -o bind,ro proc/sys proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
for each in null zero full random tty urandom; do
    touch "dev/$each"
    mount --bind "/dev/$each" "dev/$each"
done
mount --bind /usr usr
mount --bind local usr/local/bin
mount --bind "$2" opt/python
mount --bind "$3" opt/packages
mount --bind "$4" opt/project
pivot_root . old
umount -l old
# As on a machine; systemd leaves that to a container's manager.
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin SYSTEMD_UNIT_PATH=/units \\
    /lib/systemd/systemd --unit=throttle-sidecar.service --log-target=journal --show-status=no
"""
"""For a root, Python, packages, this checkout, and the settings."""


@contextmanager
def booting(root: Path) -> Iterator[Callable[..., str]]:
    """A systemd in namespaces of its own, also of the network; yields what runs a command there."""
    (of_machine,) = re.findall(
        r"^\S+ (\S+) cgroup2 ", Path("/proc/mounts").read_text(), re.MULTILINE
    )
    group = Path(of_machine) / f"throttle-sidecar-{os.getpid()}"
    group.mkdir()
    page = (PROJECT / "docs" / "install.md").read_text("utf-8")
    (toml,) = re.findall(r"## systemd\n.*?```toml\n(.*?)```", page, re.DOTALL)
    words = (str(root), sys.base_prefix, sysconfig.get_path("purelib"), str(PROJECT), toml)
    # So that its control groups are below this one, and no other systemd's.
    moved = ("sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh")
    alone = ("unshare", "--fork", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup")
    process = subprocess.Popen([*moved, *alone, "sh", "-c", BOOT, "sh", *words])
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def inside(*words: str) -> str:
        spaces = ("-t", children.read_text().strip(), "-m", "-n", "-p", "-C", "-r", "-w")
        command = ["nsenter", *spaces, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        return done.stdout + done.stderr

    try:
        yield inside
    finally:
        end(process)
        # A group is busy until its last process has ended.
        until = f"until find {group} -depth -type d -exec rmdir {{}} +; do sleep 0.1; done"
        subprocess.run(["sh", "-c", until], check=True, timeout=30, stderr=subprocess.DEVNULL)


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
async def test_systemd_starts_it_again_and_stops_it(tmp_path: Path) -> None:
    """With the page's settings, a credential and a state folder; a kill doesn't end it."""
    with booting(tmp_path) as inside:
        health = partial(inside, "curl", "-sS", "http://127.0.0.1:7070/healthz")
        await seen("an answer", health, lambda text: text.startswith('{"status":"ok"'))
        inside("systemctl", "kill", "--kill-whom=main", "--signal=KILL", UNIT.name)
        starts = partial(inside, "systemctl", "show", "--property=NRestarts", UNIT.name)
        await seen("a start", starts, lambda text: text == "NRestarts=1\n")
        await seen("an answer again", health, lambda text: text.startswith('{"status":"ok"'))
        state = inside("stat", "--format=%a %u", "/var/lib/private/throttle-sidecar/state.json")
        assert re.fullmatch(r"600 6\d{4}\n", state), "no state of a dynamic user's"
        inside("systemctl", "stop", UNIT.name)
        log = inside("journalctl", "--unit", UNIT.name)
        # By itself, and with 0: of another end systemd says "Failed with result".
        assert re.search(r"INFO +stopped\n.*: Deactivated successfully\.", log), log


LOGIN = """
printf secret >/etc/throttle-sidecar/kafka-password
cat >/etc/throttle-sidecar/sidecar.toml <<END
[kafka_admin]
bootstrap_servers = "localhost:1"
security_protocol = "SASL_PLAINTEXT"
sasl_mechanism = "SCRAM-SHA-512"
sasl_username = "throttle-sidecar"

[storage.per_volume_limit]
min_available_ratio = 0.1
END
"""
"""Settings with a login, whose password is in a file, to no broker."""


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
async def test_commands_beside_the_unit(tmp_path: Path) -> None:
    """As the page has them, they use the unit's password and state, and delete the state."""
    lines = [each.line for block in blocks("docs/install.md") for each in block.commands]
    doctor, restore, remove = (
        line.removeprefix("sudo ") for line in lines if line.startswith(("sudo env ", "sudo rm "))
    )
    with booting(tmp_path) as inside:
        shell = partial(inside, "env", "COLUMNS=200", "sh", "-c")
        state = partial(shell, "ls /var/lib/private/throttle-sidecar")
        await seen("a state", state, lambda text: "state.json" in text)
        shell(f"systemctl stop {UNIT.name}; {LOGIN}")
        said = shell(doctor)
        assert "/var/lib/throttle-sidecar/state.json can be written" in said
        for printed in (said, shell(restore)):
            assert "no broker reported" in printed
        shell(remove)
        assert "" == state()
