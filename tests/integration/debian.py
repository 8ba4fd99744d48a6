"""What container and package tests are made from: a Debian of our own, and wheels by their hashes.

Both are fetched once, into the user's cache folder, which takes a minute.
"""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafka_lab.cache import filling
from sidecar.formats.cache_folder import cache_folder

ROOT: Final = Path(__file__).parents[2]
PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
DEBIANS_PYTHON: Final = "3.11"

_DEADLINE_S: Final = 400.0
_SUITE: Final = "bookworm"
_PACKAGES: Final = "ca-certificates,python3,python3-venv"
_NOT_IN_SLIM: Final = (
    *("usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man"),
    *("var/cache/apt", "var/lib/apt/lists", "var/log"),
)
"""What Debian's slim images are without; the folders stay."""


def debian() -> Path:
    """The root folder of a Debian 12 with Python 3.11, about as python:3.11-slim-bookworm is."""
    target = cache_folder(os.environ) / f"debian-{_key(_SUITE, _PACKAGES)}"

    async def fill() -> None:
        async with asyncio.timeout(_DEADLINE_S), filling(target) as folder:
            if folder is None:
                return
            command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}"]
            await asyncio.to_thread(_run, [*command, _SUITE, str(folder)])
            folder.chmod(0o755)
            for name in _NOT_IN_SLIM:
                shutil.rmtree(folder / name)
                (folder / name).mkdir()

    asyncio.run(fill())
    return target


def wheels(python: str = PYTHON, machine: str = "") -> Path:
    """A folder with the wheels that ``requirements.txt`` and ``requirements-build.txt`` lock.

    Args:
        python: whose; by default of the Python that runs the tests.
        machine: such as aarch64; by default this one.
    """
    locks = [ROOT / "requirements-build.txt", ROOT / "requirements.txt"]
    target = (
        cache_folder(os.environ)
        / f"wheels-{_key(python + machine, *(lock.read_text() for lock in locks))}"
    )

    async def fill() -> None:
        async with asyncio.timeout(_DEADLINE_S), filling(target) as folder:
            if folder is None:
                return
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            options = ["--require-hashes", "--only-binary", ":all:", "--python-version", python]
            options += ["--dest", str(folder)]
            if machine:
                tags = (f"manylinux_2_{minor}_{machine}" for minor in range(36, 16, -1))
                options += [word for tag in tags for word in ("--platform", tag)]
            named = [word for lock in locks for word in ("--requirement", str(lock))]
            await asyncio.to_thread(_run, [*command, *options, *named])

    asyncio.run(fill())
    return target


def _key(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    assert 0 == done.returncode, f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
