"""Jars come from Maven once; what is missing is named with the line that installs it."""

from pathlib import Path

import pytest

from sidecar.demo.jars import jars, java
from sidecar.errors import ClusterError


def _tool(folder: Path, name: str, script: str) -> None:
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


def _exists(path: Path) -> bool:
    return path.exists()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH besides the shell's own tools, empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "touch").symlink_to("/usr/bin/touch")
    monkeypatch.setenv("PATH", str(folder))
    return folder


async def test_maven_fills_the_folder_once(path: Path, tmp_path: Path) -> None:
    """The second call finds it filled and needs no Maven."""
    _tool(
        path, "mvn", 'for a; do case $a in -DoutputDirectory=*) touch "${a#*=}/k.jar";; esac; done'
    )
    folder = await jars("4.3.1", tmp_path / "cache")
    assert ["k.jar"] == [file.name for file in folder.iterdir()]
    assert folder.name.startswith("kafka-4.3.1-")
    (path / "mvn").unlink()
    assert folder == await jars("4.3.1", tmp_path / "cache")


async def test_a_failed_maven_leaves_no_folder(path: Path, tmp_path: Path) -> None:
    """What it says first is the error, in one line, and the next call tries again."""
    said = "echo 'WARNING: deprecated'; echo '[ERROR] no such version'; echo '[ERROR] see http'"
    _tool(path, "mvn", f"{said}; exit 1")
    with pytest.raises(ClusterError) as raised:
        await jars("9.9.9", tmp_path / "cache")
    expected = "there are no jars of Kafka 9.9.9, or Maven can't have them: no such version"
    assert expected == str(raised.value)
    assert [] == list((tmp_path / "cache").glob("kafka-*"))


async def test_a_hung_maven_is_ended(path: Path, tmp_path: Path) -> None:
    """The deadline holds, and the process is gone."""
    _tool(path, "mvn", "echo $$ > $0.pid; while :; do :; done")
    with pytest.raises(ClusterError, match=r"the jars of Kafka 4\.3\.1 did not come within 1 s"):
        await jars("4.3.1", tmp_path / "cache", timeout_s=1.0)
    assert not _exists(Path("/proc", (path / "mvn.pid").read_text().strip()))


async def test_a_missing_maven_is_named_with_its_remedy(path: Path, tmp_path: Path) -> None:
    """The line can be pasted."""
    with pytest.raises(ClusterError, match="mvn is missing; on Debian: apt-get install -y maven"):
        await jars("4.3.1", tmp_path / "cache")


def test_a_missing_java_is_named_with_its_remedy(path: Path) -> None:
    """Likewise."""
    with pytest.raises(ClusterError, match=r"java is missing; .* openjdk-17-jdk-headless"):
        java({})


def test_java_home_comes_before_the_path(path: Path, tmp_path: Path) -> None:
    """As every Java tool has it; a JAVA_HOME without java in it is passed over."""
    _tool(path, "java", "")
    home = tmp_path / "jdk"
    assert str(path / "java") == java({"JAVA_HOME": str(home)})
    (home / "bin").mkdir(parents=True)
    _tool(home / "bin", "java", "")
    assert str(home / "bin" / "java") == java({"JAVA_HOME": str(home)})
    assert str(path / "java") == java({})
