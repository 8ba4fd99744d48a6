"""Where machine code is stored."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sidecar
import usage_pipeline

KERNEL = """
from usage_pipeline.kernels.wait import rounded_ms
assert 3 == rounded_ms(2.5)
stats = rounded_ms.stats
print(*(sum(found.values()) for found in (stats.cache_hits, stats.cache_misses)))
"""


def copied(to: Path) -> Path:
    """Returns a copy of the pipeline and of what it imports, without any compiled code."""
    for package in (sidecar, usage_pipeline):
        home = Path(package.__path__[0])
        shutil.copytree(home, to / home.name, ignore=shutil.ignore_patterns("__pycache__"))
    return to


def package_without_place(to: Path) -> Path:
    """Copies the package with no folder for code in it, as if it were read-only."""
    copied(to)
    for folder in to.rglob("*/"):
        (folder / "__pycache__").touch()
    return to


def run(package: Path, **environment: str) -> str:
    """Returns how often a new process found the kernel's code, and how often it didn't."""
    said = subprocess.run(
        [sys.executable, "-P", "-c", KERNEL],
        env={"PYTHONPATH": str(package), "HOME": os.devnull, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout.strip()


@pytest.mark.slow
def test_workers_of_an_executor_without_other_places_compile_once(tmp_path: Path) -> None:
    """The first compiles in the first of its folders; the second process loads that."""
    package = package_without_place(tmp_path / "package")
    folders = f"{tmp_path / 'blocks'},{tmp_path / 'others'}"
    assert ["0 1", "1 0"] == [run(package, SPARK_LOCAL_DIRS=folders) for _ in range(2)]
    assert not (tmp_path / "others").exists()


@pytest.mark.rare
def test_a_kernel_without_any_place_still_runs(tmp_path: Path) -> None:
    """Each process compiles it, also where the executor's folder can't be written to."""
    package = package_without_place(tmp_path / "package")
    blocks = f"{os.devnull}/blocks"
    found = [run(package), run(package), run(package, SPARK_LOCAL_DIRS=blocks)]
    assert ["0 1", "0 1", "0 1"] == found


@pytest.mark.rare
def test_what_another_release_has_compiled_is_not_read(tmp_path: Path) -> None:
    """Its index names classes that may be gone since: the kernel is compiled again."""
    package = copied(tmp_path)
    kernels = package / "usage_pipeline/kernels"
    assert "0 1" == run(package)
    (index,) = kernels.glob("__pycache__/wait.rounded_ms*.nbi")
    with index.open("rb") as file:
        pickle.load(file)  # numba's version, which it compares before it reads the rest
        rest_at = file.tell()
    index.write_bytes(index.read_bytes()[:rest_at] + b"a class that is gone")
    with (kernels / "values.py").open("a") as source:
        source.write("# The next release.\n")
    assert "0 1" == run(package)
