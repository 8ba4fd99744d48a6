"""What the wheels of the three distributions hold; they are installed in ``test_packages.py``."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


SHOWS = "from sidecar.status import runbooks; print(runbooks.index()); print(*runbooks.names())"


@pytest.mark.slow
def test_the_wheel_shows_its_runbooks(tmp_path: Path) -> None:
    """It does without the checkout."""
    build(ROOT, tmp_path)
    (wheel,) = tmp_path.iterdir()
    done = subprocess.run(
        [sys.executable, "-c", SHOWS],
        cwd=tmp_path,
        env={"PYTHONPATH": str(wheel)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    names = done.stdout.splitlines()[-1].split()
    expected = {file.stem for file in (ROOT / "docs" / "runbooks").iterdir()} - {"README"}
    assert expected == set(names)
    assert "Where to type commands" in done.stdout


def build(project: Path, out: Path) -> None:
    """Builds a wheel."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(out)],
        cwd=project,
        check=True,
        capture_output=True,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize("package", ["sidecar", "usage_pipeline", "kafka_lab"])
def test_a_wheel_has_its_package_and_nothing_else(package: str, tmp_path: Path) -> None:
    """It has every module and what they read, but no bytecode and not the project's own file."""
    project = ROOT if package == "sidecar" else ROOT / package
    build(project, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        str(file.relative_to(ROOT))
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    if package == "sidecar":
        runbooks = (ROOT / "docs" / "runbooks").iterdir()
        expected |= {f"sidecar/runbooks/{runbook.name}" for runbook in runbooks}
    assert expected - {f"{package}/pyproject.toml"} == {
        name for name in found if not name.endswith(".jar")
    }
