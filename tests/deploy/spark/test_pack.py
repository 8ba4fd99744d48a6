"""``deploy/spark/pack``, with a pip that installs nothing."""

import ast
import os
import re
import subprocess
import tarfile
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PACK = ROOT / "deploy" / "spark" / "pack"
PIP = """#!/bin/sh
for word; do
    case $before in
        --target) mkdir -p "$word/bin" "$word/numba/__pycache__" && touch "$word/numba/nb.py" ;;
        --requirement) cp "$word" "$ASKED" ;;
    esac
    before=$word
done
"""
CLUSTERS = {"pyspark", "py4j"}
"""What a Spark cluster has."""


@pytest.fixture
def packed(tmp_path: Path) -> tuple[Path, str]:
    """An archive, and what pip was asked for."""
    python, asked = tmp_path / "python", tmp_path / "asked"
    python.write_text(PIP)
    python.chmod(0o755)
    file = tmp_path / "made" / "packages.tar"
    environment = {**os.environ, "PYTHON": str(python), "ASKED": str(asked)}
    subprocess.run([PACK, file], check=True, env=environment, umask=0o077)
    return file, asked.read_text()


def needed(names: Iterable[str]) -> set[str]:
    """What packages need on this Python, they themselves and indirect needs included."""
    found: set[str] = set()
    due = list(names)
    while due:
        name = canonicalize_name(due.pop())
        if name not in found:
            found.add(name)
            reported = map(Requirement, distribution(name).requires or ())
            due += [
                each.name
                for each in reported
                if each.marker is None or each.marker.evaluate({"extra": ""})
            ]
    return found


def test_all_that_the_pipeline_needs_is_asked_for(packed: tuple[Path, str]) -> None:
    """It is the pipeline's packages and all that these need, each with its hashes."""
    asked = re.findall(r"^([a-z0-9-]+)==.*?(?=^[a-z]|\Z)", packed[1], re.MULTILINE | re.DOTALL)
    reported = map(Requirement, distribution("throttle-sidecar-pipeline").requires or ())
    own = {each.name for each in reported} - {"throttle-sidecar"}
    assert CLUSTERS & set(asked) == set()
    assert needed({*asked, *(own - CLUSTERS)}) == set(asked)
    pins = re.split(r"^(?=[a-z])", packed[1], flags=re.MULTILINE)[1:]
    assert [] == [pin for pin in pins if "--hash=sha256:" not in pin]


def test_everybody_can_read_what_is_packed(packed: tuple[Path, str]) -> None:
    """A checkout and a machine with umask 077 have files that only their owner can read."""
    with tarfile.open(packed[0]) as archive:
        modes = {each.mode & 0o055 for each in archive.getmembers()}
    assert {0o044, 0o055} == modes


def test_the_archive_has_packages_by_name(packed: tuple[Path, str]) -> None:
    """It has this project's too, no "./", which Spark refuses, and no compiled code."""
    with tarfile.open(packed[0]) as archive:
        names = archive.getnames()
    assert {"numba", "sidecar", "usage_pipeline"} == {name.partition("/")[0] for name in names}
    assert {"numba/nb.py", "usage_pipeline/batch/job.py"} <= set(names)
    assert [] == [name for name in names if "__pycache__" in name]


def imported(source: bytes) -> set[str]:
    """The modules of the sidecar that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
    return {name for name in names if name.partition(".")[0] == "sidecar"}


@pytest.mark.slow
def test_the_archive_has_all_of_the_sidecar_that_the_pipeline_imports(
    packed: tuple[Path, str],
) -> None:
    """And what these modules import; a worker has no other copy of the sidecar."""
    with tarfile.open(packed[0]) as archive:
        files = {
            each.name: opened.read()
            for each in archive
            if each.name.endswith(".py") and (opened := archive.extractfile(each)) is not None
        }
    due = [name for name in files if name.startswith("usage_pipeline/")]
    followed: set[str] = set()
    while due:
        for module in imported(files[due.pop()]) - followed:
            followed.add(module)
            path = module.replace(".", "/")
            due.append(
                next(file for file in (f"{path}.py", f"{path}/__init__.py") if file in files)
            )
    assert "sidecar.formats" in {name.rpartition(".")[0] for name in followed}


def test_a_pip_that_fails_leaves_no_archive(tmp_path: Path) -> None:
    """It leaves no part of one either."""
    file = tmp_path / "packages.tar"
    run = subprocess.run([PACK, file], check=False, env={**os.environ, "PYTHON": "false"})
    assert run.returncode != 0
    assert not file.exists()
