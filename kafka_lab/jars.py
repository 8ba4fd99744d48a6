"""The brokers' jars: Maven resolves them once from the pom beside this file, and they are cached.

The folder's name contains the Kafka version and a hash of the pom, so a change of either resolves
the jars again. If the folder exists, Maven is not needed.

Example: ``kafka-4.3.1-8c1f2a9d03be`` in the cache folder, 44 MB.
"""

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kafka_lab.cache import filling
from kafka_lab.versions import DEFAULT_VERSION, KNOWN_VERSIONS
from kafka_lab.waiting import deadline
from sidecar.errors import ClusterError

__all__ = ["DEFAULT_VERSION", "jars", "java"]

_INSTALL = "apt-get install -y maven openjdk-17-jdk-headless"
_POM = Path(__file__).with_name("pom.xml")
_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies"
"""The full name, because without a network Maven can't resolve the prefix ``dependency:``."""

_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_REASON_CHARACTERS: Final = 250
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_DECORATION: Final = re.compile(r"^Failed to execute goal .*? for project \S+: | -> \[Help \d+\]$")


async def jars(version: str, cache: Path, timeout_s: float = 600.0) -> Path:
    """Return the folder with a Kafka version's jars; Maven fills it if it does not exist.

    Args:
        version: the version of org.apache.kafka:kafka_2.13, such as "4.3.1".
        cache: the folder of the cache.
        timeout_s: the deadline in seconds for Maven's downloads, by this process or by another one
            that resolves the same jars.

    Raises:
        ClusterError: the version does not exist, Maven is missing, or it failed.
    """
    if not _VERSION.fullmatch(version):
        raise ClusterError(f"'{version}' is no version of Kafka, such as {DEFAULT_VERSION}")
    key = hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]
    target = cache / f"kafka-{version}-{key}"
    if target.is_dir():
        return target
    maven = _tool("mvn")
    async with (
        deadline(timeout_s, f"the jars of Kafka {version} did not come"),
        filling(target) as folder,
    ):
        if folder is not None:
            await _resolve(maven, version, folder)
    return target


def java(environ: Mapping[str, str]) -> str:
    """Return the JDK's ``java``, from JAVA_HOME or from the path.

    Raises:
        ClusterError: there is no ``java``.
    """
    home = environ.get("JAVA_HOME")
    if home and os.access(Path(home, "bin", "java"), os.X_OK):
        return str(Path(home, "bin", "java"))
    return _tool("java")


async def _resolve(maven: str, version: str, folder: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        maven,
        "--batch-mode",
        "--quiet",
        f"--file={_POM}",
        f"-Dkafka.version={version}",
        f"-DoutputDirectory={folder}",
        f"--activate-profiles={'kafka-3' if version.startswith('3.') else 'kafka-4'}",
        # Without this, Maven remembers for a day that a version could not be downloaded.
        "--update-snapshots",
        _GOAL,
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
        raise ClusterError(
            f"Kafka {version} can't be resolved (known to work: {', '.join(KNOWN_VERSIONS)}): "
            + _reason(output.decode(errors="replace"))
        )


def _reason(output: str) -> str:
    """Return the end of Maven's first error, which states the cause; Maven's advice follows it."""
    plain = (_COLOURS.sub("", line).strip() for line in output.splitlines())
    lines = [line for line in plain if line]
    errors = (line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]"))
    line = _DECORATION.sub("", next(errors, lines[0] if lines else "there is no output"))
    while len(line) > _REASON_CHARACTERS and ": " in line:
        _, line = line.split(": ", 1)
    return line[:_REASON_CHARACTERS]


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ClusterError(f"{name} is missing; on Debian: {_INSTALL}")
    return path
