"""The JVMs of a cluster: their command lines, their logs, and how they ended.

The options are for a fast start and little memory, because scenarios last a minute: only the first
compiler tier, and an archive of the classes of an earlier start (``warmup.py``). Together they
reduce the CPU time of a start to a quarter, which matters when several JVMs start on few cores.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kafka_lab.supervisor import Supervisor
from kafka_lab.waiting import POLL_S, until
from sidecar.errors import ClusterError

STARTED = b"Kafka Server started"
"""The log's message when a controller is up, and when a broker is up and unfenced."""

_LOG4J2 = Path(__file__).with_name("log4j2.properties")
_RELOAD4J = Path(__file__).with_name("reload4j.properties")
_TAIL_LINES = 15
_TAIL_BYTES = 64 << 10


class Processes:
    """Starts JVMs through the supervisor, and knows which of them have ended."""

    def __init__(self, supervisor: Supervisor, java: str, jars: Path, heap_mb: int) -> None:
        self.supervisor = supervisor
        self.java = java
        self.jars = jars
        self.archive: Path | None = None
        self._heap_mb = heap_mb
        self._logs: dict[str, Path] = {}

    async def start(
        self,
        name: str,
        arguments: Sequence[str],
        log: Path,
        *,
        main: str = "kafka.Kafka",
        options: Sequence[str] = (),
        more_jars: Sequence[Path] = (),
    ) -> int:
        """Start a JVM with a name of the caller's, and return its pid."""
        self._logs[name] = log
        # Behind Kafka's jars, because the archive needs a class path that begins with them.
        jars = [*sorted(self.jars.glob("*.jar")), *more_jars]
        command = self._command(jars, main, arguments, options, log)
        return await self.supervisor.spawn(name, command, log)

    async def wait_started(self, name: str) -> None:
        """Wait until the log of a broker or a controller says that it is up.

        Raises:
            ClusterError: the process ended instead; the message has the end of its log.
        """
        log = self._logs[name]
        while not (log.exists() and STARTED in log.read_bytes()):
            status = self.supervisor.exit_status(name)
            if status is not None:
                raise ClusterError(
                    f"{name} ended with status {status} during its start:\n{tail(log)}"
                )
            await asyncio.sleep(POLL_S)

    async def wait_ended(self, name: str) -> int:
        """Wait until the process has ended, and return its status (negative: the signal)."""
        await until(lambda: self.supervisor.exit_status(name) is not None)
        return self.supervisor.exit_status(name) or 0

    async def run(self, name: str, main: str, arguments: Sequence[str], log: Path) -> None:
        """Run a tool until it has succeeded.

        Raises:
            ClusterError: the tool failed; the message has the end of its output.
        """
        await self.start(name, arguments, log, main=main)
        status = await self.wait_ended(name)
        if status != 0:
            raise ClusterError(f"{name} ended with status {status}:\n{tail(log)}")

    async def signal(self, name: str, signal: int) -> None:
        """Send a signal to a process."""
        await self.supervisor.ask("signal", name=name, signal=signal)

    def is_running(self, name: str) -> bool:
        """Return whether the process was started and has not ended."""
        return name in self._logs and self.supervisor.exit_status(name) is None

    def _command(
        self,
        jars: Sequence[Path],
        main: str,
        arguments: Sequence[str],
        options: Sequence[str],
        log: Path,
    ) -> list[str]:
        archive = [] if self.archive is None else [f"-XX:SharedArchiveFile={self.archive}"]
        return [
            self.java,
            f"-Xmx{self._heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            # Its file in the shared temporary folder has the process id as its name, and two
            # namespaces have the same ids.
            "-XX:-UsePerfData",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            "-Dlog4j2.disableJmx=true",
            # Kafka 4 uses the first option, and Kafka 3 the second.
            f"-Dlog4j2.configurationFile={_LOG4J2}",
            f"-Dlog4j.configuration={_RELOAD4J.as_uri()}",
            f"-Dkafka.log.file={log}",
            *archive,
            *options,
            "-cp",
            ":".join(str(jar) for jar in jars),
            main,
            *arguments,
        ]


def tail(log: Path) -> str:
    """Return the last lines of a log, or those from its last error on, without stack frames.

    The text is empty if there are no lines.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    # Without this, the frames of an exception hide its message.
    texts = [line for line in lines if not line.lstrip().startswith(("at ", "... "))]
    errors = [at for at, line in enumerate(texts) if " ERROR " in line or " FATAL " in line]
    # While a broker ends, its other threads often write more lines than are shown.
    first = min([*errors[-1:], max(0, len(texts) - _TAIL_LINES)])
    return "\n".join(line[:300] for line in texts[first : first + _TAIL_LINES])
