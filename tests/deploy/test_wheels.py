"""What the wheels of the three distributions hold; they are installed in ``test_packages.py``."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["sidecar", "usage_pipeline", "kafka_lab"])
def test_a_wheel_has_its_package_and_nothing_else(package: str, tmp_path: Path) -> None:
    """It has every module and what they read, and neither bytecode nor the project's own file."""
    project = ROOT if package == "sidecar" else ROOT / package
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(tmp_path)],
        cwd=project,
        check=True,
        capture_output=True,
        timeout=60,
    )
    (wheel,) = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        str(file.relative_to(ROOT))
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert expected - {f"{package}/pyproject.toml"} == {
        name for name in found if not name.endswith(".jar")
    }
