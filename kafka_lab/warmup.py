"""Files that the first start of a Kafka version makes for all later starts.

- The controller's formatted log dir. The storage tool writes it, because the metadata records in it
  differ between versions. Later clusters copy it and insert their own cluster id.
- An archive of the JVM's loaded classes (JEP 350). A combined node that starts and stops writes it.
  With a JDK that does not support this (before 13), brokers start without an archive.

Example for 4.3.1 on JDK 17: 48 MB, made in about 6 s. On a busy machine, the CPU time until three
brokers and a controller are ready falls from 18 to 11 s, and formatting, which takes a second, is
saved.
"""

import hashlib
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from kafka_lab.broker_properties import combined_properties, controller_properties, render
from kafka_lab.cache import filling
from kafka_lab.ports import Ports
from kafka_lab.processes import Processes
from kafka_lab.waiting import deadline

_ANY_CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAA"
_NAME = "the first start"
_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Warm:
    """The files for later starts.

    Attributes:
        controller_log_dir: a log dir formatted for ``CONTROLLER_ID``, of no real cluster.
        class_archive: the archive of classes; None if the JDK does not support it.
    """

    controller_log_dir: Path
    class_archive: Path | None


async def warm_up(processes: Processes, folder: Path) -> Warm:
    """Return the files, and make them if they do not exist.

    Raises:
        ClusterError: this Kafka version does not start.
    """
    target = processes.jars / f"warm-{_jdk_key(processes.java)}"
    if not target.is_dir():
        async with (
            deadline(_TIMEOUT_S, "the first start of this Kafka version did not end"),
            filling(target) as partial,
        ):
            if partial is not None:
                await _make(processes, folder, partial)
    archive = target / "classes.jsa"
    return Warm(target / "controller", archive if archive.exists() else None)


async def _make(processes: Processes, folder: Path, partial: Path) -> None:
    log_dir = folder / "warm-up"
    with Ports() as ports:
        node_port, controller_port = ports.reserve(), ports.reserve()
        file = folder / "warm-up.properties"
        file.write_text(render(controller_properties(controller_port, str(log_dir))))
        arguments = ["format", "--config", str(file), "--cluster-id", _ANY_CLUSTER_ID]
        log = folder / "warm-up.log"
        await processes.run("the storage tool", "kafka.tools.StorageTool", arguments, log)
        shutil.copytree(log_dir, partial / "controller")

        file.write_text(render(combined_properties(node_port, controller_port, str(log_dir))))
        # An older JDK ignores the unknown option, and makes no archive.
        options = [
            "-XX:+IgnoreUnrecognizedVMOptions",
            f"-XX:ArchiveClassesAtExit={partial / 'classes.jsa'}",
        ]
        await processes.start(_NAME, [str(file)], log, options=options)
        await processes.wait_started(_NAME)
        await processes.signal(_NAME, signal.SIGTERM)
        await processes.wait_ended(_NAME)


def _jdk_key(java: str) -> str:
    """Return a key for the JDK, because only the JVM that wrote an archive can use it."""
    binary = Path(java).resolve()
    state = binary.stat()
    key = f"{binary}|{state.st_size}|{state.st_mtime_ns}"
    return hashlib.sha256(key.encode()).hexdigest()[:12]
