"""The JVMs of a cluster: their command line, their logs, their ends.

Tuned to start soon and stay small, as scenarios last a minute: the first compiler tier alone, and
an archive of the classes of an earlier start (``warmup.py``). Together they take a quarter of the
CPU time of a default JVM's start, which is what counts when several start at once on few cores.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kafka_lab.supervisor import Supervisor
from kafka_lab.waiting import POLL_S, until
from sidecar.errors import ClusterError

STARTED = b"Kafka Server started"
"""What a broker's and a controller's log says when it is up, a broker's when it is unfenced."""

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
        """Start a JVM under a name of our own; its pid."""
        self._logs[name] = log
        # Behind Kafka's: the archive is good for a class path that begins with its own.
        jars = [*sorted(self.jars.glob("*.jar")), *more_jars]
        command = self._command(jars, main, arguments, options, log)
        return await self.supervisor.spawn(name, command, log)

    async def wait_started(self, name: str) -> None:
        """Until a broker's or controller's log says that it is up.

        Raises:
            ClusterError: it ended instead; with the last lines of its log.
        """
        log = self._logs[name]
        while not (log.exists() and STARTED in log.read_bytes()):
            status = self.supervisor.exit_status(name)
            if status is not None:
                raise ClusterError(f"{name} ended with {status} at its start:\n{tail(log)}")
            await asyncio.sleep(POLL_S)

    async def wait_ended(self, name: str) -> int:
        """Until it has ended; how (negative: by that signal)."""
        await until(lambda: self.supervisor.exit_status(name) is not None)
        return self.supervisor.exit_status(name) or 0

    async def run(self, name: str, main: str, arguments: Sequence[str], log: Path) -> None:
        """Start a tool and wait for its good end.

        Raises:
            ClusterError: it failed; with the last lines that it wrote.
        """
        await self.start(name, arguments, log, main=main)
        status = await self.wait_ended(name)
        if status != 0:
            raise ClusterError(f"{name} ended with {status}:\n{tail(log)}")

    async def signal(self, name: str, signal: int) -> None:
        """Send a signal."""
        await self.supervisor.ask("signal", name=name, signal=signal)

    def is_running(self, name: str) -> bool:
        """Whether it was started and has not ended."""
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
            # Its file in the shared temporary folder is named by the process id, and two namespaces
            # have the same ids.
            "-XX:-UsePerfData",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            "-Dlog4j2.disableJmx=true",
            # Kafka 4 reads the first, Kafka 3 the second.
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
    """The last lines of a log, without stack frames, or those from its last error on.

    "" if there are none.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    # Else the frames of one exception hide what it says.
    texts = [line for line in lines if not line.lstrip().startswith(("at ", "... "))]
    errors = [at for at, line in enumerate(texts) if " ERROR " in line or " FATAL " in line]
    # A broker's other threads write on while it ends, often more lines than are shown.
    first = min([*errors[-1:], max(0, len(texts) - _TAIL_LINES)])
    return "\n".join(line[:300] for line in texts[first : first + _TAIL_LINES])
