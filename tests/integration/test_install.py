"""The rows of the README's install table, from the command to a producer that has to wait.

The container's is in ``test_container.py``. Compose's, the unit's and the chart's go as far as they
can without Docker, systemd and Kubernetes: ``test_compose.py``, ``test_systemd.py``,
``tests/deploy/kubernetes``, ``test_kubernetes_pods.py``.
"""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sidecar.cli.callback.jar import NAME, callback_jar
from tests.integration.debian import ROOT, wheels
from tests.support.command import Done, run
from tests.support.daemon import Daemon
from tests.support.first_throttle import (
    add_callback,
    one_small_volume,
    readme_settings,
    table_row,
    throttles,
)

pytestmark = pytest.mark.timeout(300)

_CLONE = (
    'git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$0"'
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a clone has, after ``make jar``."""
    folder = tmp_path / "checkout"
    target = folder / callback_jar().relative_to(ROOT)
    target.parent.mkdir(parents=True)
    subprocess.run(["sh", "-c", _CLONE, folder], cwd=ROOT, check=True, timeout=60)
    target.write_bytes(callback_jar().read_bytes())
    return folder


@pytest.fixture(scope="module")
def index() -> Path:
    """The locked wheels, in place of PyPI."""
    return wheels()


async def install(line: str, checkout: Path, index: Path) -> Path:
    """Type a line of the table in a checkout, with a folder of wheels as the index; the program."""
    home = checkout.parent / "home"
    tools, program = Path(sys.executable).parent, home / ".local/bin/throttle-sidecar"
    if line.startswith("pip "):
        await to_its_end([sys.executable, "-m", "venv", home], {}, checkout)
        tools, program = home / "bin", home / "bin/throttle-sidecar"
    environ = {"HOME": str(home), "PATH": f"{tools}:/usr/bin:/bin"}
    environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
    environ |= {"UV_OFFLINE": "1", "UV_FIND_LINKS": str(index)}
    await to_its_end(shlex.split(line), environ, checkout)
    return program


async def to_its_end(words: Sequence[str | Path], environ: dict[str, str], folder: Path) -> Done:
    """Run a command, which must succeed."""
    done = await run(list(map(str, words)), environ, folder=folder, timeout_s=120)
    assert 0 == done.code, done.said
    return done


async def doctor(program: Path, environ: dict[str, str]) -> str:
    """What it reports about the broker's callback and about the effect."""
    words = [str(program), "doctor", "--sidecars", environ["SIDECAR_HTTP_LISTEN"]]
    rows = (await run([*words, "--watch", "0.5s"], environ | {"COLUMNS": "200"})).out.splitlines()
    return "\n".join(row for row in rows if {"callback", "effect"} & set(row.split()[1:2]))


def test_the_jar_comes_first() -> None:
    """Otherwise what is installed has none."""
    assert "make jar" == table_row("Python")[0]


@pytest.mark.parametrize("line", table_row("Python")[1:])
async def test_python(line: str, checkout: Path, index: Path, tmp_path: Path) -> None:
    """The program has the jar; doctor reports that it is missing, and later that it works."""
    program = await install(line, checkout, index)
    async with one_small_volume() as cluster:
        environ = await readme_settings(cluster)
        daemon = Daemon(cluster, environ, tmp_path / "log", program=[str(program)])
        await daemon.start()
        await daemon.decides(1.0)
        assert "broker 0 has no quota callback" in await doctor(program, environ)
        await to_its_end([program, "callback", "copy", tmp_path], {}, tmp_path)
        await add_callback(cluster, tmp_path / NAME)
        await throttles(cluster, daemon)
        assert "broker 0 throttles its producers" in await doctor(program, environ)
        assert 0 == await daemon.end()
