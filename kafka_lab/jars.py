"""The brokers' jars: resolved once with Maven from the pom beside this file, then cached.

The folder's name holds the Kafka version and a hash of the pom, so a change of either resolves
anew. A second call checks that folder and needs no Maven.

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
"""Not the short ``dependency:``: without a network Maven would only say that it knows none."""

_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_REASON_CHARACTERS: Final = 250
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_BESIDES: Final = re.compile(r"^Failed to execute goal .*? for project \S+: | -> \[Help \d+\]$")


async def jars(version: str, cache: Path, timeout_s: float = 600.0) -> Path:
    """The folder with a Kafka version's jars, filled by Maven if it isn't there yet.

    Args:
        version: of org.apache.kafka:kafka_2.13, such as "4.3.1".
        cache: where such folders are cached.
        timeout_s: for Maven's downloads, seconds; also how long another process that fetches the
            same jars is waited for.

    Raises:
        ClusterError: no such version, no Maven, or it failed.
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
    """The JDK's ``java``: of JAVA_HOME if that is set, else on the path.

    Raises:
        ClusterError: there is none.
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
        # Or a version that could not be had once, without a network, stays so for a day.
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


def _reason(said: str) -> str:
    """The end of Maven's first error, which has the cause; what follows is advice about Maven."""
    plain = (_COLOURS.sub("", line).strip() for line in said.splitlines())
    lines = [line for line in plain if line]
    errors = (line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]"))
    line = _BESIDES.sub("", next(errors, lines[0] if lines else "it said nothing"))
    while len(line) > _REASON_CHARACTERS and ": " in line:
        _, line = line.split(": ", 1)
    return line[:_REASON_CHARACTERS]


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ClusterError(f"{name} is missing; on Debian: {_INSTALL}")
    return found
