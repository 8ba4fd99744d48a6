"""Wheel and sdist: built, built again from the sdist, and installed where there is only Python."""

import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from sidecar import __version__
from sidecar.cli import COMMANDS
from sidecar.cli.callback.jar import NAME, callback_jar
from tests.integration.debian import ROOT, wheels

pytestmark = pytest.mark.timeout(300)

BUILD = ("LICENSE", "README.md", "hatch_build.py", "pyproject.toml")
PATHS = {"PATH": "/usr/bin:/bin"}


@dataclass(frozen=True, slots=True)
class Packages:
    """What ``make dist`` makes."""

    wheel: Path
    sdist: Path


def source(*paths: str) -> set[str]:
    """The checkout's files below some paths, all by default: tracked, or new and not ignored."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *paths]
    done = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.splitlines())


def build(root: Path, out: Path, *targets: str) -> None:
    """Builds as ``python -m build --no-isolation`` does."""
    words = [word for target in targets for word in ("--target", target)]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *words, "--directory", str(out)],
        cwd=root,
        check=True,
        capture_output=True,
        timeout=60,
    )


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    out = tmp_path_factory.mktemp("dist")
    build(ROOT, out, "wheel", "sdist")
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return Packages(wheel, sdist)


def test_the_sdist_builds_the_same_wheel(packages: Packages, tmp_path: Path) -> None:
    """It is so byte for byte: nothing that the wheel needs is missing from the sdist."""
    subprocess.run(["tar", "-xzf", packages.sdist, "-C", tmp_path], check=True)
    (unpacked,) = tmp_path.iterdir()
    build(unpacked, tmp_path / "again", "wheel")
    (again,) = (tmp_path / "again").iterdir()
    assert packages.wheel.read_bytes() == again.read_bytes()


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_has_the_package_the_runbooks_and_the_jar_and_nothing_else(
    packages: Packages,
) -> None:
    """It has every module, what they read, the mark of types and the licence."""
    found = contents(packages.wheel)
    info = f"throttle_sidecar-{__version__}.dist-info"
    expected = {*source("sidecar"), f"sidecar/{NAME}", f"{info}/licenses/LICENSE"}
    expected |= {name.replace("docs", "sidecar", 1) for name in source("docs/runbooks")}
    expected |= {f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
    assert expected == set(found)
    assert "sidecar/py.typed" in found
    assert callback_jar().read_bytes() == found[f"sidecar/{NAME}"]


def test_the_sdist_has_what_is_needed_to_work_on_it(packages: Packages) -> None:
    """It has all that is tracked: tests, docs, the Makefile; besides only the jar."""
    with tarfile.open(packages.sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert {"PKG-INFO", f"deploy/quota-callback/target/{NAME}"} == found - source()
    assert set() == source() - found


def metadata(packages: Packages) -> Message:
    name = f"throttle_sidecar-{__version__}.dist-info/METADATA"
    return message_from_string(contents(packages.wheel)[name].decode())


def test_the_metadata_is_complete(packages: Packages) -> None:
    """It has what an index shows, and what licence scanners ask."""
    metadata_lines = metadata(packages)
    assert ("throttle-sidecar", __version__) == (metadata_lines["Name"], metadata_lines["Version"])
    assert ("Apache-2.0", "LICENSE") == (
        metadata_lines["License-Expression"],
        metadata_lines["License-File"],
    )
    assert (">=3.11", "text/markdown") == (
        metadata_lines["Requires-Python"],
        metadata_lines["Description-Content-Type"],
    )
    classifiers = metadata_lines.get_all("Classifier", [])
    assert {"Typing :: Typed", "Operating System :: POSIX :: Linux"} <= set(classifiers)


@pytest.fixture(scope="module")
def installed(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, as pipx installs the wheel for a user who has nothing else, with the lock."""
    home = tmp_path_factory.mktemp("home")
    options = f"--no-index --find-links {wheels()} --constraint {ROOT / 'requirements.txt'}"
    pipx = [sys.executable, "-m", "pipx", "install", "--backend", "uv", f"--pip-args={options}"]
    done = subprocess.run(
        [*pipx, str(packages.wheel)],
        env={**PATHS, "HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return home / ".local" / "bin" / "throttle-sidecar"


def run(program: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *words],
        env={**PATHS, **environ},
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_lists_its_options_in_a_plain_install(installed: Path, command: str) -> None:
    """Nothing of the development environment is needed for it."""
    done = run(installed, command, "--help")
    assert (0, "") == (done.returncode, done.stderr)


def test_an_install_checks_a_cluster(installed: Path) -> None:
    """It says which setting is missing, and that nobody answers."""
    done = run(installed, "check")
    assert 2 == done.returncode
    assert "SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS" in done.stderr
    done = run(
        installed,
        "check",
        SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS="127.0.0.1:1",
        SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_RATIO="0.1",
    )
    assert (2, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert done.stderr.startswith("Unknown: ")


def test_an_install_prints_its_settings(installed: Path) -> None:
    """They are a table, for which it brings what it needs."""
    done = run(installed, "settings", SIDECAR_STORAGE_CHECK_INTERVAL="PT0S")
    assert (0, "") == (done.returncode, done.stderr)
    assert "PT0S" in done.stdout


@pytest.mark.parametrize(
    ("command", "folder"), [("demo", "./kafka_lab"), ("pipeline", "./usage_pipeline")]
)
def test_a_command_of_another_package_names_it(installed: Path, command: str, folder: str) -> None:
    """The message has the line that installs it."""
    done = run(installed, command)
    assert 2 == done.returncode
    assert f"pip install . {folder}\n" in done.stderr


def test_a_wheel_without_the_jar_says_where_there_is_one(tmp_path: Path) -> None:
    """It was built from a checkout in which nobody has run make jar."""
    checkout = tmp_path / "checkout"
    for name in source("sidecar", "docs/runbooks", *BUILD):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_bytes((ROOT / name).read_bytes())
    build(checkout, tmp_path / "dist", "wheel")
    (wheel,) = (tmp_path / "dist").iterdir()
    assert f"sidecar/{NAME}" not in contents(wheel)
    # A wheel is a folder of modules.
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from sidecar.cli import main; main()"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "site"), "callback", "copy", str(tmp_path)],
        env=PATHS,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("this throttle-sidecar was installed without the quota callback")
