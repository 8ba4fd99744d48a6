"""``make release``: all of it, twice, from one commit in two folders, without a registry."""

import asyncio
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kafka_lab.ports import Ports
from sidecar import __version__
from tests.integration.container import Buildah, Image, end, first_in
from tests.integration.debian import ROOT, debian, wheels
from tests.support.waiting import SEEN_S, seen

pytestmark = pytest.mark.timeout(3600)

URL = "https://git.example.org/team/throttle-sidecar"
MACHINES = {"amd64": ("x86_64", 62), "arm64": ("aarch64", 183)}
"""Platform -> Python's name, and the number that ELF has for it."""

EMULATED_S = 300.0
"""How long an emulated program may take that takes a second on its own machine."""


def git(folder: Path, *words: str) -> str:
    fixed = {"GIT_AUTHOR_DATE": "@1790000000 +0000", "GIT_COMMITTER_DATE": "@1790000000 +0000"}
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env={**os.environ, **fixed}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    if os.geteuid() != 0:
        pytest.skip("debootstrap and buildah's chroot isolation need root")
    debian()
    for machine, _ in MACHINES.values():
        wheels("3.11", machine)
    folder = tmp_path_factory.mktemp("buildah")
    buildah = Buildah(folder, [machine for machine, _ in MACHINES.values()])
    yield buildah
    buildah("rmi", "--all", "--force")
    shutil.rmtree(folder)


def released(checkout: Path, buildah: Buildah) -> Path:
    """Makes the release of a checkout."""
    environ = {
        "VERSION": __version__,
        "REPOSITORY_URL": URL,
        "BUILDAH": shlex.join(buildah.command),
        "BUILDAH_ISOLATION": "chroot",
        "IMAGE_OPTIONS": shlex.join(buildah.options),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tools.release"],
        cwd=checkout,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return checkout / "dist"


@pytest.fixture(scope="module")
def dist(buildah: Buildah, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the files here, committed anew, since a checkout with changes is refused."""
    checkout = tmp_path_factory.mktemp("one") / "checkout"
    checkout.mkdir()
    listed = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z", ":!.venv")
    for name in filter(None, listed.split("\0")):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name, follow_symlinks=False)
    git(checkout, "init", "--quiet")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "all")
    return released(checkout, buildah)


def test_a_release_has_everything_and_its_sums(dist: Path) -> None:
    """Each file is in SHA256SUMS, with the sum of its bytes."""
    jar = f"throttle-sidecar-quota-callback-{__version__}"
    assert {
        "SHA256SUMS",
        "release-notes.md",
        *(f"{jar}{ending}" for ending in (".jar", "-sources.jar", ".pom", ".cdx.json")),
        *(
            f"throttle-sidecar-{__version__}{ending}"
            for ending in (".tgz", ".oci.tar", ".cdx.json")
        ),
        f"throttle-sidecar-pipeline-{__version__}.cdx.json",
        f"throttle_sidecar-{__version__}-py3-none-any.whl",
        f"throttle_sidecar-{__version__}.tar.gz",
        f"throttle_sidecar_pipeline-{__version__}-py3-none-any.whl",
    } == {path.name for path in dist.iterdir()}
    sums = [line.split("  ") for line in (dist / "SHA256SUMS").read_text().splitlines()]
    assert {path.name for path in dist.iterdir()} - {"SHA256SUMS"} == {name for _, name in sums}
    for digest, name in sums:
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest


def test_the_jar_of_the_wheel_is_the_published_one(dist: Path) -> None:
    """Who copies it out of the wheel gets the same bytes as who downloads it."""
    (wheel,) = dist.glob("throttle_sidecar-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.read("sidecar/throttle-sidecar-quota-callback.jar")
    assert (dist / f"throttle-sidecar-quota-callback-{__version__}.jar").read_bytes() == inside


def test_the_bills_of_materials_name_what_is_locked(dist: Path) -> None:
    """Each locked package is a component; the jar has none, since what it uses is the broker's."""
    locked = (ROOT / "requirements.txt").read_text().count("==")
    found = {path.name: json.loads(path.read_text()) for path in dist.glob("*.cdx.json")}
    bill = found[f"throttle-sidecar-{__version__}.cdx.json"]
    assert (__version__, locked) == (
        bill["metadata"]["component"]["version"],
        len(bill["components"]),
    )
    jar = f"throttle-sidecar-quota-callback-{__version__}.cdx.json"
    assert [] == found[jar].get("components", [])


def test_the_chart_is_one_that_helm_reads(dist: Path) -> None:
    """It has its addresses, and renders as the folder does."""
    helm = Path(sys.executable).with_name("helm")
    chart = dist / f"throttle-sidecar-{__version__}.tgz"
    shown = subprocess.run(
        [helm, "show", "chart", chart], check=True, capture_output=True, text=True, timeout=60
    )
    assert f"home: {URL}\n" in shown.stdout
    values = "image.repository=r.example.org/t,bootstrapServers=b:9092,limit.minAvailableRatio=0.1"
    rendered = [
        subprocess.run(
            [helm, "template", place, "--set", values],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for place in (str(chart), str(ROOT / "deploy/helm/throttle-sidecar"))
    ]
    assert rendered[0] == rendered[1]


def images(dist: Path, folder: Path) -> Iterator[tuple[str, dict[str, Any], Path]]:
    """Yields the architecture, the configuration and the only layer of each image."""
    shutil.unpack_archive(dist / f"throttle-sidecar-{__version__}.oci.tar", folder, filter="data")

    def blob(descriptor: dict[str, str]) -> Path:
        return folder / "blobs" / descriptor["digest"].replace(":", "/")

    (index,) = json.loads((folder / "index.json").read_text())["manifests"]
    for image in json.loads(blob(index).read_text())["manifests"]:
        manifest = json.loads(blob(image).read_text())
        config = json.loads(blob(manifest["config"]).read_text())["config"]
        (layer,) = manifest["layers"]
        yield image["platform"]["architecture"], config, blob(layer)


def test_the_image_has_each_platforms_own_programs(dist: Path, tmp_path: Path) -> None:
    """Python, its libraries and the packages are the platform's."""
    found = list(images(dist, tmp_path))
    assert list(MACHINES) == [architecture for architecture, _, _ in found]
    for architecture, config, layer in found:
        assert ("10001:10001", URL) == (
            config["User"],
            config["Labels"]["org.opencontainers.image.source"],
        )
        machines = set()
        with tarfile.open(layer) as files:
            for member in files:
                if member.isfile() and (content := files.extractfile(member)) is not None:
                    head = content.read(20)
                    if head[:4] == b"\x7fELF":
                        machines.add(head[18])
        assert {MACHINES[architecture][1]} == machines


def started(command: list[str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output)


async def test_the_image_for_arm64_starts(dist: Path, tmp_path: Path) -> None:
    """Emulated, as hardened as test_container.py: it serves its API, and ends when told to."""
    emulator = shutil.which("qemu-aarch64-static")
    assert emulator is not None, "tools/prerequisites qemu-aarch64-static"
    _, config, layer = next(each for each in images(dist, tmp_path) if each[0] == "arm64")
    root = tmp_path / "root"
    with tarfile.open(layer) as files:
        files.extractall(root, filter="tar")
    shutil.copy(emulator, root / "emulator")
    folder = "/opt/throttle-sidecar/bin"
    words = ["/emulator", f"{folder}/python", f"{folder}/throttle-sidecar", *config["Cmd"]]
    with Ports() as ports:
        port = ports.reserve()
    environ = {
        "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO": "0.1",
        "SIDECAR_HTTP_LISTEN": f"127.0.0.1:{port}",
    }
    log = tmp_path / "log"
    process = started(Image(root, config).command(words, environ), log)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=SEEN_S) as api:

            async def decision() -> Any:
                assert process.poll() is None, log.read_text()
                try:
                    return (await api.get("/v1/throttle-factor")).json()
                except httpx.TransportError:
                    return {"reason": ""}

            refused = "127.0.0.1:1: connection refused"
            await seen(
                "a refused poll", decision, lambda shown: refused in shown["reason"], EMULATED_S
            )
        os.kill(first_in(process), signal.SIGTERM)
        assert 0 == await asyncio.to_thread(process.wait, EMULATED_S), log.read_text()
    finally:
        end(process)


def test_the_same_commit_gives_the_same_bytes(dist: Path, buildah: Buildah, tmp_path: Path) -> None:
    """It does so in another folder, at another time."""
    git(tmp_path, "clone", "--quiet", str(dist.parent), "checkout")
    again = released(tmp_path / "checkout", buildah)
    assert (dist / "SHA256SUMS").read_text() == (again / "SHA256SUMS").read_text()
