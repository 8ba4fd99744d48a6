"""Jars come from Maven once; what is missing is named with the line that installs it."""

from pathlib import Path

import pytest

from kafka_lab.jars import jars, java
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


def _fails(folder: Path, said: str) -> None:
    """A Maven that fails as the real one does: after resets of the colour, advice behind it."""
    script = f"""printf '\\033[0m\\033[0m[ERROR] {said} -> [Help 1]\\n[ERROR] \\n'
echo '[ERROR] Re-run Maven using the -X switch to enable full debug logging.'
printf '\\033[0m\\033[0m\\n'
exit 1"""
    _tool(folder, "mvn", script)


NOT_RESOLVED = (
    "Failed to execute goal on project kafka-broker: Could not resolve dependencies for project"
    " kafka_lab:kafka-broker:pom:1: "
)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            f"{NOT_RESOLVED}Could not find artifact org.apache.kafka:kafka_2.13:jar:9.9.9 in"
            " central (https://repo.example/maven2)",
            "Could not find artifact org.apache.kafka:kafka_2.13:jar:9.9.9 in central"
            " (https://repo.example/maven2)",
        ),
        (
            f"{NOT_RESOLVED}Failed to collect dependencies at org.apache.kafka:kafka_2.13:jar:9.9:"
            " Failed to read artifact descriptor for org.apache.kafka:kafka_2.13:jar:9.9: Could not"
            " transfer artifact org.apache.kafka:kafka_2.13:pom:9.9 from/to central"
            " (https://repo.example/maven2): transfer failed for https://repo.example/maven2/org/"
            "apache/kafka/kafka_2.13/9.9/kafka_2.13-9.9.pom: Unknown host repo.example: Temporary"
            " failure in name resolution",
            "transfer failed for https://repo.example/maven2/org/apache/kafka/kafka_2.13/9.9/"
            "kafka_2.13-9.9.pom: Unknown host repo.example: Temporary failure in name resolution",
        ),
        ("x" * 1000, "x" * 250),
    ],
)
async def test_a_failed_maven_is_reported_in_one_line(
    path: Path, tmp_path: Path, said: str, reason: str
) -> None:
    """It has the version, the known ones, and the cause, which is the end of its first error."""
    _fails(path, said)
    with pytest.raises(ClusterError) as raised:
        await jars("9.9.9", tmp_path / "cache")
    reported = str(raised.value)
    known = "Kafka 9.9.9 can't be resolved (known to work: 3.3.2, 3.9.1, 4.3.1, 4.4.0): "
    assert known + reason == reported


@pytest.mark.parametrize("version", ["../../x", "", "4.3.1/", "4 3"])
async def test_what_is_no_version_is_reported_so(path: Path, tmp_path: Path, version: str) -> None:
    """Maven is not started, and no folder is made."""
    _tool(path, "mvn", "touch $0.called; exit 1")
    with pytest.raises(ClusterError, match=f"'{version}' is no version of Kafka, such as 4.3.1"):
        await jars(version, tmp_path / "cache")
    assert not _exists(tmp_path / "cache")
    assert not _exists(path / "mvn.called")


async def test_a_maven_that_fails_otherwise_is_reported_by_its_first_line(
    path: Path, tmp_path: Path
) -> None:
    """It may have a wrong JAVA_HOME, or print nothing at all."""
    for said, reason in (("\nJAVA_HOME is not defined\nbye", "JAVA_HOME"), ("", "no output")):
        _tool(path, "mvn", f"printf '{said}'; exit 1")
        with pytest.raises(ClusterError, match=rf": [\w ]*{reason}[\w ]*$"):
            await jars("9.9.9", tmp_path / "cache")


async def test_a_failed_maven_leaves_no_folder(path: Path, tmp_path: Path) -> None:
    """The next call tries again, and asks the registry again for what it did not have."""
    _tool(path, "mvn", 'echo "$@" >> $0.said; exit 1')
    for _ in range(2):
        with pytest.raises(ClusterError):
            await jars("9.9.9", tmp_path / "cache")
    assert [] == list((tmp_path / "cache").glob("kafka-*"))
    calls = (path / "mvn.said").read_text().splitlines()
    assert [True, True] == ["--update-snapshots" in call for call in calls]


@pytest.mark.slow
async def test_a_hung_maven_is_ended(path: Path, tmp_path: Path) -> None:
    """It ends at the deadline, and the process is gone."""
    _tool(path, "mvn", "echo $$ > $0.pid; while :; do :; done")
    with pytest.raises(ClusterError, match=r"the jars of Kafka 4\.3\.1 did not come within 1 s"):
        await jars("4.3.1", tmp_path / "cache", timeout_s=1.0)
    assert not _exists(Path("/proc", (path / "mvn.pid").read_text().strip()))


async def test_a_missing_tool_is_named_with_its_remedy(path: Path, tmp_path: Path) -> None:
    """The line with the command can be pasted."""
    with pytest.raises(ClusterError, match="mvn is missing; on Debian: apt-get install -y maven"):
        await jars("4.3.1", tmp_path / "cache")
    with pytest.raises(ClusterError, match=r"java is missing; .* openjdk-17-jdk-headless"):
        java({})


def test_java_home_comes_before_the_path(path: Path, tmp_path: Path) -> None:
    """Every Java tool does so; a JAVA_HOME without java in it is ignored."""
    _tool(path, "java", "")
    home = tmp_path / "jdk"
    assert str(path / "java") == java({"JAVA_HOME": str(home)})
    (home / "bin").mkdir(parents=True)
    _tool(home / "bin", "java", "")
    assert str(home / "bin" / "java") == java({"JAVA_HOME": str(home)})
    assert str(path / "java") == java({})
