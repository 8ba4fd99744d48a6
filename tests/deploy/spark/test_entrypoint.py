"""What containers start, with programs that only print their arguments."""

import os
import subprocess
from pathlib import Path

import pytest

ENTRYPOINT = Path(__file__).parents[3] / "deploy" / "spark" / "entrypoint"
SAY = '#!/bin/sh\nprintf "%s\\n" "$@"\n'


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a tini that prints its arguments, a word in a line."""
    (tmp_path / "tini").write_text(SAY)
    (tmp_path / "tini").chmod(0o755)
    return tmp_path


def started(programs: Path, *command: str, **environment: str) -> list[str]:
    """What is started for a command, as words."""
    path = f"{programs}:{os.environ['PATH']}"
    run = subprocess.run(
        [ENTRYPOINT, *command],
        env={"PATH": path, "SPARK_HOME": "/opt/spark", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.splitlines()


def test_a_driver_is_run_where_it_was_submitted_to(programs: Path) -> None:
    """It is in this container, whatever the properties say; it listens at the pod's address."""
    words = started(
        *(programs, "driver", "--properties-file", "spark.properties", "local:///a.py", "a b"),
        SPARK_DRIVER_BIND_ADDRESS="10.0.0.7",
    )
    assert ["-s", "--", "/opt/spark/bin/spark-submit", "--deploy-mode", "client"] == words[:5]
    assert "spark.driver.bindAddress=10.0.0.7" in words
    assert ["--properties-file", "spark.properties", "local:///a.py", "a b"] == words[-4:]


def test_an_executor_gets_what_the_driver_set_in_variables(programs: Path) -> None:
    """Options of Java with spaces stay whole; folders of settings come before Spark's classes."""
    words = started(
        *(programs, "executor"),
        SPARK_JAVA_OPT_0="-Dname=a b",
        SPARK_JAVA_OPT_1="--add-opens=java.base/java.nio=ALL-UNNAMED",
        SPARK_EXECUTOR_MEMORY="4g",
        SPARK_CONF_DIR="/opt/spark/conf",
        HADOOP_CONF_DIR="/opt/hadoop/conf",
        SPARK_CLASSPATH="/jars/more.jar",
        SPARK_DRIVER_URL="spark://CoarseGrainedScheduler@driver:7078",
        SPARK_EXECUTOR_ID="3",
        SPARK_EXECUTOR_CORES="4",
        SPARK_APPLICATION_ID="spark-1",
        SPARK_EXECUTOR_POD_IP="10.0.0.8",
        SPARK_EXECUTOR_POD_NAME="pod-3",
        SPARK_RESOURCE_PROFILE_ID="0",
    )
    expected = (
        *("-s", "--", "java", "-Dname=a b", "--add-opens=java.base/java.nio=ALL-UNNAMED"),
        *("-Xms4g", "-Xmx4g", "-cp"),
        "/opt/spark/conf:/opt/hadoop/conf:/jars/more.jar:/opt/spark/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", "spark://CoarseGrainedScheduler@driver:7078"),
        *("--executor-id", "3", "--cores", "4", "--app-id", "spark-1"),
        *("--hostname", "10.0.0.8", "--resourceProfileId", "0", "--podName", "pod-3"),
    )
    assert list(expected) == words


def test_any_other_command_is_run_as_it_is(programs: Path) -> None:
    """It is run with its arguments."""
    words = started(programs, "throttle-sidecar", "pipeline", "a b")
    assert ["-s", "--", "throttle-sidecar", "pipeline", "a b"] == words


def test_an_executor_without_its_variables_does_not_start(programs: Path) -> None:
    """The error says what is missing."""
    with pytest.raises(subprocess.CalledProcessError) as reported:
        started(programs, "executor", SPARK_EXECUTOR_MEMORY="4g")
    assert "SPARK_DRIVER_URL" in reported.value.stderr
