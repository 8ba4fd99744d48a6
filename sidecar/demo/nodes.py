"""What a cluster consists of, as values: volumes, brokers, and the command that runs a node."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LOG4J = Path(__file__).with_name("log4j2.properties")
_TAIL_LINES = 15
_TAIL_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class VolumeDir:
    """One volume of one broker.

    Attributes:
        path: the log dir on it, as the broker names it. It lies in the file system's root, so that
            the log dir can fail while the volume stays.
        mount: the file system's root; inside the cluster's namespace only, where there is one.
        size_bytes: the size asked for; what it really has if ``Cluster.volumes_are_real``.
    """

    path: str
    mount: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker.

    Attributes:
        id: its node id.
        address: host:port of its plain listener.
        volumes: one log dir each.
        log: its log file, standard error included; the request log is the file ``<log>.requests``.
        pid: as this process sees it; the last one when it does not run.
        addresses: listener name -> host:port.
    """

    id: int
    address: str
    volumes: tuple[VolumeDir, ...]
    log: Path
    pid: int
    addresses: dict[str, str]


def version_tuple(version: str) -> tuple[int, ...]:
    """The numbers of a version: (4, 3, 1) for "4.3.1" and for "4.3.1-rc1"."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0]))


def java_command(
    java: str, jars: Path, main: str, arguments: Sequence[str], *, heap_mb: int, log: Path
) -> list[str]:
    """The command line of one JVM, tuned to start soon and stay small.

    The first compiler tier alone is enough for scenarios of a minute, and makes three brokers ready
    in 3 s instead of 5. No performance data file: two namespaces have processes of the same id, and
    the files would be the same in the shared temporary folder.
    """
    return [
        java,
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        "-Dlog4j2.disableJmx=true",
        f"-Dlog4j2.configurationFile={_LOG4J}",
        f"-Dkafka.log.file={log}",
        "-cp",
        ":".join(str(jar) for jar in sorted(jars.glob("*.jar"))),
        main,
        *arguments,
    ]


def tail(log: Path) -> str:
    """The last lines of a log, for an error; "" if there are none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(line[:300] for line in lines[-_TAIL_LINES:])
