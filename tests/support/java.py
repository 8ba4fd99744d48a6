"""Our own Java programs for tests and benchmarks, and what the MBeans of a broker say.

A program is one source file beside this one (with ``Attached``, where it needs that), compiled once
into the cache folder against the jars of a Kafka version: ``await compiled("ReadBeans", jars)`` is
the folder of its classes.
"""

import asyncio
import atexit
import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kafka_lab.cache import filling
from kafka_lab.cluster import Cluster
from kafka_lab.jars import jars, java
from kafka_lab.waiting import POLL_S, deadline
from sidecar.errors import ClusterError
from sidecar.formats.cache_folder import cache_folder

_CALLBACK: Final = Path(__file__).parents[2] / "deploy" / "quota-callback" / "src"
_TIMEOUT_S: Final = 60.0
_NOT_YET: Final = "java.io.IOException: Connection refused"

Bean = Mapping[str, float | bool | str | None]
"""Attribute -> value; what is neither a number nor a boolean as Java's text of it."""


async def compiled(program: str, libraries: Path) -> Path:
    """The folder with a program's classes, made by javac if it isn't there yet.

    Args:
        program: the name of its source file, without ".java".
        libraries: the folder with the jars that it is compiled against.

    Raises:
        ClusterError: there is no JDK, or it does not compile.
    """
    source = Path(__file__).with_name(f"{program}.java")
    shared = source.with_name("Attached.java").read_text()
    options = ["-Xlint:all", "-Werror"]
    return await _compiled(source, [source.parent], source.read_text() + shared, libraries, options)


async def compiled_scenario_player(libraries: Path) -> Path:
    """The folder with the classes of ``ScenarioPlayer``, beside the quota callback's own tests.

    Raises:
        ClusterError: as ``compiled``.
    """
    folders = [_CALLBACK / "main" / "java", _CALLBACK / "test" / "java"]
    source = folders[-1] / "throttlesidecar" / "reading" / "ScenarioPlayer.java"
    texts = [each.read_text() for folder in folders for each in sorted(folder.rglob("*.java"))]
    # Its warnings are Maven's to give, by the versions that the callback is built against.
    return await _compiled(source, folders, "".join(texts), libraries, ["-nowarn", "-Xlint:none"])


async def _compiled(
    source: Path, folders: Sequence[Path], texts: str, libraries: Path, options: Sequence[str]
) -> Path:
    """A program's classes, with those of its folders that it uses; anew for other texts."""
    javac = _javac()
    key = f"{javac}|{libraries.name}|{texts}"
    cache = cache_folder(os.environ)
    target = cache / f"{source.stem}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    if not target.is_dir():
        late = f"{source.stem} was not compiled"
        async with deadline(_TIMEOUT_S, late), filling(target) as folder:
            if folder is not None:
                words = [javac, *options, "-proc:none", "-cp", f"{libraries}/*"]
                path = os.pathsep.join(map(str, folders))
                await _run([*words, "-sourcepath", path, "-d", str(folder), str(source)])
    return target


async def beans(cluster: Cluster, broker_id: int, pattern: str) -> dict[str, Bean]:
    """The MBeans of a broker whose names match, with all their attributes.

    Args:
        cluster: it runs.
        broker_id: the broker.
        pattern: as JMX has them, such as "throttlesidecar:*".

    Returns:
        Name, as it was registered -> attributes.

    Raises:
        ClusterError: they can't be read.
    """
    return await beans_of(cluster.brokers[broker_id].pid, cluster.version, pattern)


async def beans_of(pid: int, version: str, pattern: str) -> dict[str, Bean]:
    """The MBeans of a process that match, as ``beans``; the version is that of the cached jars."""
    reader = await _reader(await jars(version, cache_folder(os.environ)))
    async with deadline(_TIMEOUT_S, f"the MBeans of process {pid} were not read"):
        while True:
            said = await reader.ask(f"{pid} {pattern}")
            # The JVM has made its socket and does not listen yet: busy machines are that slow.
            if said.startswith("!") and _NOT_YET in said:
                await asyncio.sleep(POLL_S)
                continue
            if not said.startswith("{"):
                raise ClusterError(f"the MBeans of process {pid} can't be read: {said}")
            found: dict[str, Bean] = json.loads(said)
            return found


async def bean(cluster: Cluster, broker_id: int, name: str) -> Bean:
    """The attributes of one MBean of a broker.

    Raises:
        ClusterError: it can't be read, or is not there.
    """
    found = await beans(cluster, broker_id, name)
    if len(found) != 1:
        raise ClusterError(f"broker {broker_id} has {len(found)} MBeans {name}")
    return next(iter(found.values()))


class _Reader:
    """``ReadBeans`` in a JVM that lasts as long as this process; no event loop owns it."""

    def __init__(self, classes: Path) -> None:
        words = [java(os.environ), "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._asking = threading.Lock()
        self._process = subprocess.Popen(
            [*words, "-cp", classes, "ReadBeans"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        atexit.register(self.end)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    async def ask(self, question: str) -> str:
        """The line that answers a line; an answer that does not come ends the JVM."""
        try:
            return await asyncio.to_thread(self._ask, question)
        except asyncio.CancelledError:
            self.end()
            raise

    def _ask(self, question: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            self._process.stdin.write(f"{question}\n")
            self._process.stdin.flush()
            return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


_readers: list[_Reader] = []
"""The one that runs, once something was read."""


async def _reader(libraries: Path) -> _Reader:
    classes = await compiled("ReadBeans", libraries)
    if not _readers or not _readers[-1].is_running:
        _readers[:] = [_Reader(classes)]
    return _readers[-1]


def _javac() -> str:
    """The compiler of the JDK whose ``java`` the brokers run with."""
    return str(Path(java(os.environ)).resolve().with_name("javac"))


async def _run(words: list[str]) -> bytes:
    """What a command writes to standard output; a ClusterError with all it says if it fails."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise ClusterError(f"{words[0]} can't be run: {error}") from error
    try:
        said, complained = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise ClusterError(f"{words[0]} failed:\n{(said + complained).decode(errors='replace')}")
    return said
