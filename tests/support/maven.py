"""Jars that a pom of this repository names, fetched once for each version of it."""

import asyncio
import hashlib
import os
import subprocess
from pathlib import Path

from kafka_lab.cache import filling
from sidecar.formats.cache_folder import cache_folder

_DEADLINE_S = 300.0


async def jars_of(pom: Path) -> Path:
    """The folder with them, filled by Maven if it isn't there yet.

    Args:
        pom: its "package" copies the jars to the property ``jars.dir``.
    """
    target = cache_folder(os.environ) / f"{pom.parent.name}-{_key(pom)}"
    async with asyncio.timeout(_DEADLINE_S), filling(target) as folder:
        if folder is not None:
            maven = ["mvn", "--batch-mode", "--quiet", f"--file={pom}", "package"]
            done = [*maven, f"-Djars.dir={folder}"]
            await asyncio.to_thread(subprocess.run, done, check=True, timeout=_DEADLINE_S)
    return target


def _key(pom: Path) -> str:
    return hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
