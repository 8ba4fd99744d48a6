"""A command of ``throttle-sidecar`` in a process of its own, as tests run it until it ends."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.documents import Document

COMMAND_S = 60.0
"""How long a command may take, seconds; a busy machine starts Python in several."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All of its output."""
        return self.out + self.err

    def document(self) -> Document:
        """The JSON object on standard output."""
        document: Document = json.loads(self.out)
        return document


def python(*args: str, **environ: str) -> str:
    """What Python prints in a process of its own, with no setting but these variables."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("SIDECAR_")}
    return subprocess.run(
        [sys.executable, *args],
        env=inherited | environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=COMMAND_S,
    ).stdout


async def command(*words: str, environ: Mapping[str, str], timeout_s: float = COMMAND_S) -> Done:
    """Run ``throttle-sidecar WORDS`` with this environment and nothing else."""
    return await run([sys.executable, "-m", "sidecar", *words], environ, timeout_s=timeout_s)


async def run(
    argv: Sequence[str],
    environ: Mapping[str, str] | None = None,
    *,
    folder: Path | None = None,
    timeout_s: float = COMMAND_S,
) -> Done:
    """Run any command, with the test's environment and in its folder where none is named."""
    done = await asyncio.to_thread(
        subprocess.run,
        argv,
        cwd=folder,
        env=None if environ is None else dict(environ),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)
