"""The Dockerfile's image: built for real, and run with all that a platform can take away.

Its root file system can't be written, its user is nobody, there is no shell and no capability.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kafka_lab.ports import Ports
from sidecar import __version__
from sidecar.cli.callback.jar import NAME, callback_jar
from tests.integration.container import REVISION, Image, built, end, first_in
from tests.integration.debian import DEBIANS_PYTHON, debian, wheels
from tests.support.background import bootstrap, running
from tests.support.daemon import Daemon
from tests.support.fake_broker import FakeCluster
from tests.support.first_throttle import add_callback, one_small_volume, readme_settings, throttles
from tests.support.waiting import SEEN_S, seen

pytestmark = pytest.mark.timeout(500)

LARGEST_BYTES = 110_000_000
"""Of the whole image: 88 MB, with room for newer packages."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if os.geteuid() != 0:
        pytest.skip("debootstrap and buildah's chroot isolation need root")
    # Both are fetched before, since the build has a time-out.
    debian()
    wheels(DEBIANS_PYTHON)
    folder = tmp_path_factory.mktemp("container")
    with built(folder) as image:
        yield image
    shutil.rmtree(folder)


def test_the_image_says_what_a_platform_asks(image: Image) -> None:
    """It has a user by number, an entry point without a shell, a health check and its version."""
    config = image.config
    user, group = config["User"].split(":")
    assert (True, True) == (int(user) > 1000, int(group) > 1000)
    assert (["throttle-sidecar"], ["run"]) == (config["Entrypoint"], config["Cmd"])
    assert ["CMD", "throttle-sidecar", "health"] == config["Healthcheck"]["Test"]
    kind = "org.opencontainers.image."
    assert {
        "title": "throttle-sidecar",
        "version": __version__,
        "description": "Keeps Apache Kafka clusters from running out of disk",
        "licenses": "Apache-2.0",
        "revision": REVISION,
        "source": "",
    } == {
        name.removeprefix(kind): value
        for name, value in config["Labels"].items()
        if name.startswith(kind)
    }
    assert {"7070/tcp"} == set(config["ExposedPorts"])


def test_nothing_of_the_build_is_in_it(image: Image) -> None:
    """It has no pip, no source, no compiler's folder, no secret and no other large package."""
    assert {"throttle-sidecar"} == {path.name for path in (image.root / "opt").iterdir()}
    ours = image.root / "opt" / "throttle-sidecar"
    assert [] == [*ours.rglob("pip"), *image.root.glob("etc/pip.conf")]
    assert {"build", "project", "wheel", "image", "jar"}.isdisjoint(
        path.name for path in image.root.iterdir()
    )
    sizes = [path.lstat().st_size for path in image.root.rglob("*") if not path.is_dir()]
    assert sum(sizes) < LARGEST_BYTES


def test_its_packages_are_the_locked_ones(image: Image) -> None:
    """Each was checked against its hash; here: none is missing, none is left over."""
    (packages,) = image.root.glob("opt/throttle-sidecar/lib/python3.*/site-packages")
    found = {path.name.partition("-")[0] for path in packages.glob("*.dist-info")}
    expected = {path.name.partition("-")[0] for path in wheels(DEBIANS_PYTHON).glob("*.whl")}
    build_only = {"editables", "hatchling", "packaging", "pathspec", "pluggy", "tomlkit"}
    build_only |= {"trove_classifiers"}
    assert expected - build_only <= found
    assert found <= expected | {"throttle_sidecar"}


def test_python_is_its_only_program(image: Image) -> None:
    """There is no shell and no package manager: the tests here show that none is needed."""
    folders = ("bin", "sbin", "usr/bin", "usr/local/bin", "opt/throttle-sidecar/bin")
    found = [path.name for folder in folders for path in image.root.glob(f"{folder}/*")]
    assert ["python3.11", "python", "throttle-sidecar"] == found
    assert 127 == image.start_and_wait(["sh", "-c", "true"]).returncode


def test_no_module_misses_a_library(image: Image) -> None:
    """Debian's packages are chosen one by one: every module of the sidecar finds what it loads."""
    code = (
        "import importlib, pkgutil, ssl, sidecar, zoneinfo\n"
        "for module in pkgutil.walk_packages(sidecar.__path__, 'sidecar.'):\n"
        "    module.name.endswith('__main__') or importlib.import_module(module.name)\n"
        "print(ssl.create_default_context().cert_store_stats()['x509_ca'] > 100)\n"
        "print(zoneinfo.ZoneInfo('Europe/Berlin'))"
    )
    done = image.start_and_wait(["python", "-c", code])
    assert (0, "True\nEurope/Berlin\n") == (done.returncode, done.stdout), done.stderr


def test_it_can_write_nothing_and_gain_nothing(image: Image) -> None:
    """It can't write even where everybody may, and gets no privilege: it needs neither."""
    done = image.start_and_wait(["python", "-c", "open('/tmp/x', 'w')"])
    assert (1, True) == (done.returncode, "Read-only file system" in done.stderr), done.stderr
    code = "print(open('/proc/self/status').read())"
    reported = image.start_and_wait(["python", "-c", code]).stdout
    status = {
        name: value.split()
        for name, _, value in (line.partition(":") for line in reported.splitlines() if line)
    }
    user, group = image.config["User"].split(":")
    assert ([user] * 4, [group] * 4, []) == (status["Uid"], status["Gid"], status["Groups"])
    assert ["1"] == status["NoNewPrivs"]
    assert {0} == {int(status[f"Cap{which}"][0], 16) for which in ("Inh", "Prm", "Eff", "Amb")}


def test_it_watches_a_cluster_and_is_healthy_until_it_is_stopped(
    image: Image, tmp_path: Path
) -> None:
    """It decides, keeps its state in the one folder it may write, and ends on SIGTERM as pid 1.

    The health check is the image's own, in a process beside it: 0 while it runs, 1 after it.
    """
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, *map(int, image.config["User"].split(":")))
    volumes = {"/var/lib/throttle-sidecar": state}
    health = image.config["Healthcheck"]["Test"][1:]
    with running(FakeCluster().add(3)) as cluster, Ports() as ports:
        address = f"127.0.0.1:{ports.reserve()}"
        environ = {
            "SIDECAR_HTTP_LISTEN": address,
            "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": bootstrap(cluster),
            "SIDECAR_STATE_FILE": "/var/lib/throttle-sidecar/state.json",
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO": "0.1",
        }
        words = [*image.config["Entrypoint"], *image.config["Cmd"]]
        log = tmp_path / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                image.command(words, environ, volumes), stdout=output, stderr=output
            )
        try:
            asyncio.run(seen("a decision", log.read_text, lambda text: "(observation)" in text))
            assert 200 == httpx.get(f"http://{address}/healthz").status_code
            metrics = httpx.get(f"http://{address}/metrics").text
            assert "process_resident_memory_bytes " in metrics
            assert 1.0 == httpx.get(f"http://{address}/v1/throttle-factor").json()["factor"]
            well = image.start_and_wait(health, environ)
            assert (0, f"http://{address} is alive\n") == (well.returncode, well.stdout)
            os.kill(first_in(process), signal.SIGTERM)
            assert 0 == process.wait(SEEN_S), log.read_text()
        finally:
            end(process)
        ill = image.start_and_wait(health, environ)
        assert 1 == ill.returncode
        assert ill.stdout.startswith(f"http://{address} Connection refused: nothing listens there")
    assert ["state.json"] == [path.name for path in state.iterdir()]


def test_new_volumes_are_its_users(image: Image) -> None:
    """A container engine creates a new volume with the owner of the folder that it replaces."""
    user, group = map(int, image.config["User"].split(":"))
    for folder in ("jars", "var/lib/throttle-sidecar"):
        reported = (image.root / folder).stat()
        assert (user, group) == (reported.st_uid, reported.st_gid)
        assert [] == list((image.root / folder).iterdir())


def test_it_copies_the_quota_callback_out(image: Image, tmp_path: Path) -> None:
    """An init container does so, to a volume that its user may write."""
    os.chown(tmp_path, *map(int, image.config["User"].split(":")))
    done = image.run("callback", "copy", "/jars", volumes={"/jars": tmp_path})
    assert (0, "") == (done.returncode, done.stderr)
    assert f"quota callback {__version__} is now /jars/{NAME}\n" == done.stdout
    assert callback_jar().read_bytes() == (tmp_path / NAME).read_bytes()


def test_a_volume_of_somebody_elses_is_reported(image: Image, tmp_path: Path) -> None:
    """The init container fails with exit code 2, and says why in a line."""
    done = image.run("callback", "copy", "/jars", volumes={"/jars": tmp_path})
    assert (2, "") == (done.returncode, done.stdout)
    assert f"the quota callback's jar can't be copied to /jars/{NAME}: " in done.stderr
    assert [] == list(tmp_path.iterdir())


async def test_from_the_image_to_a_throttled_producer(image: Image, tmp_path: Path) -> None:
    """The row of the README's table: its jar goes to the broker, and it runs beside the broker."""
    os.chown(tmp_path, *map(int, image.config["User"].split(":")))
    done = image.run("callback", "copy", "/jars", volumes={"/jars": tmp_path})
    assert (0, "") == (done.returncode, done.stderr)
    async with one_small_volume() as cluster:
        program = image.command(image.config["Entrypoint"], await readme_settings(cluster))
        daemon = Daemon(cluster, {}, tmp_path / "log", program=program)
        await daemon.start()
        await add_callback(cluster, tmp_path / NAME)
        await throttles(cluster, daemon)
