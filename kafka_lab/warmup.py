"""What the first start of a Kafka version makes for all later ones.

- The controller's formatted log dir. The storage tool writes it, since the metadata records in it
  differ from version to version; later clusters copy it and put their own cluster id in.
- An archive of the JVM's loaded classes (JEP 350), written by one combined node that starts and
  stops. A JDK that can't make one (before 13) starts brokers without.

Example, of 4.3.1 on JDK 17: made in about 6 s, 48 MB; the CPU time until three brokers and a
controller are ready falls from 18 to 11 s on a busy machine, and the format's second is gone.
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
    """What a later start uses.

    Attributes:
        controller_log_dir: formatted, for ``properties.CONTROLLER_ID``, of no cluster.
        class_archive: None when the JDK makes none.
    """

    controller_log_dir: Path
    class_archive: Path | None


async def warm_up(processes: Processes, folder: Path) -> Warm:
    """Make it, or find it made.

    Raises:
        ClusterError: this Kafka does not start.
    """
    target = processes.jars / f"warm-{_jdk_key(processes.java)}"
    if not target.is_dir():
        async with (
            deadline(_TIMEOUT_S, "the first start of this Kafka version was not over"),
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
        # An older JDK ignores the option that it doesn't know, and makes no archive.
        options = [
            "-XX:+IgnoreUnrecognizedVMOptions",
            f"-XX:ArchiveClassesAtExit={partial / 'classes.jsa'}",
        ]
        await processes.start(_NAME, [str(file)], log, options=options)
        await processes.wait_started(_NAME)
        await processes.signal(_NAME, signal.SIGTERM)
        await processes.wait_ended(_NAME)


def _jdk_key(java: str) -> str:
    """Changes with the JDK: an archive is good for the JVM that wrote it only."""
    binary = Path(java).resolve()
    found = binary.stat()
    key = f"{binary}|{found.st_size}|{found.st_mtime_ns}"
    return hashlib.sha256(key.encode()).hexdigest()[:12]
