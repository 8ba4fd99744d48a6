"""The dedicated controller is restarted, with what it has been configured with meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_lab.controller import Controller
from kafka_lab.isolation import Isolation
from kafka_lab.processes import Processes
from kafka_lab.supervisor import Supervisor
from kafka_lab.waiting import deadline

JAVA = """#!/bin/sh
# In place of a JVM: it writes its class path and its configuration, and is up.
while [ "$1" != -cp ]; do shift; done
echo "class path $2"
cat "$4"
echo "Kafka Server started"
exec sleep 1000
"""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Processes that start a stand-in for Java."""
    java = tmp_path / "java"
    java.write_text(JAVA)
    java.chmod(0o700)
    with Supervisor(Isolation("plain folders", (), has_mounts=False)) as supervisor:
        yield Processes(supervisor, str(java), tmp_path, heap_mb=16)


async def test_a_restart_brings_what_was_configured(tmp_path: Path, processes: Processes) -> None:
    """Until then it runs as before. An earlier run's log is not taken for that of this run."""
    log = tmp_path / "controller.log"
    controller = Controller(tmp_path, {"node.id": "100", "a": "its own"}, processes)
    async with deadline(10.0, "the first start was not over"):
        await controller.spawn()
        await controller.wait_started()
    controller.configure({"a": "ours"}, [tmp_path / "ours.jar"])
    assert "class path \nnode.id=100\na=its own\nKafka Server started\n" == log.read_text()
    await controller.restart(timeout_s=10.0)
    expected = f"class path {tmp_path}/ours.jar\nnode.id=100\na=ours\nKafka Server started\n"
    assert expected == log.read_text()
    assert 2 == logs_in(tmp_path)


def logs_in(folder: Path) -> int:
    """Returns the number of runs that have left a log."""
    return len(list(folder.glob("controller*.log")))
