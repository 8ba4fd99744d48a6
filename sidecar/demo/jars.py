"""The brokers' jars: resolved once with Maven from the pom beside this file, then kept.

The cache folder's name holds the Kafka version and a hash of the pom, so a change of either
resolves anew and nothing is ever half-filled: Maven fills a folder beside it that is renamed when
complete. A second call is a look at that folder and needs no Maven.

Example: ``kafka-4.3.1-8c1f2a9d03be`` in ``$XDG_CACHE_HOME/throttle-sidecar``, 44 MB.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from sidecar.errors import ClusterError

DEFAULT_VERSION = "4.3.1"
_INSTALL = "apt-get install -y maven openjdk-17-jdk-headless"
_POM = Path(__file__).with_name("pom.xml")
_POLL_S = 0.1
_LAST_LINES = 5


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where jars are kept unless told otherwise: the XDG base directory for caches."""
    base = environ.get("XDG_CACHE_HOME", "")
    # The specification says that a relative path is to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "throttle-sidecar"


async def jars(version: str, cache: Path, timeout_s: float = 600.0) -> Path:
    """The folder with a Kafka version's jars, filled by Maven if it isn't there yet.

    Args:
        version: of org.apache.kafka:kafka_2.13, such as "4.3.1".
        cache: where such folders are kept.
        timeout_s: for Maven's downloads, seconds; also how long another process that fetches the
            same jars is waited for.

    Raises:
        ClusterError: no Maven or no JDK, or Maven failed.
    """
    key = hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]
    target = cache / f"kafka-{version}-{key}"
    if target.is_dir():
        return target
    maven = _tool("mvn")
    _tool("java")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        async with asyncio.timeout(timeout_s), _locked(cache / "resolve.lock"):
            if not target.is_dir():
                # The lock is ours, so what others left half-filled is dead.
                for stale in cache.glob("partial-*"):
                    shutil.rmtree(stale)
                partial = Path(tempfile.mkdtemp(prefix="partial-", dir=cache))
                try:
                    await _resolve(maven, version, partial)
                    partial.rename(target)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
    except TimeoutError as error:
        raise ClusterError(f"the jars of Kafka {version} took over {timeout_s:.0f} s") from error
    except OSError as error:
        raise ClusterError(f"the jars of Kafka {version} can't be kept: {error}") from error
    return target


async def _resolve(maven: str, version: str, folder: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        maven,
        "--batch-mode",
        "--quiet",
        f"--file={_POM}",
        f"-Dkafka.version={version}",
        f"-DoutputDirectory={folder}",
        "dependency:copy-dependencies",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        said = output.decode(errors="replace").strip().splitlines()
        reason = "\n".join(line[:300] for line in said[:_LAST_LINES])
        raise ClusterError(f"Maven found no jars of Kafka {version}:\n{reason}")


def java(environ: Mapping[str, str]) -> str:
    """The JDK's ``java``: of JAVA_HOME if that is set, else on the path.

    Raises:
        ClusterError: there is none.
    """
    home = environ.get("JAVA_HOME")
    if home and os.access(Path(home, "bin", "java"), os.X_OK):
        return str(Path(home, "bin", "java"))
    return _tool("java")


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ClusterError(f"{name} is missing; on Debian: {_INSTALL}")
    return found


@asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    """Hold a lock between processes: two Mavens in one local repository can spoil it."""
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_POLL_S)
        yield
