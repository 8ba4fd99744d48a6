"""The disk of a sidecar's state: it outlives the process, and can fail or hang.

Example: it is full from 10 s to 20 s: writes of that time raise ENOSPC, and the file has what the
last write before left.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from tests.simulation.loop import HangsError


class SimulatedDisk:
    """See ``sidecar.state.disk.Disk``.

    Attributes:
        is_full: whether writes fail.
        hangs: whether nothing ends that is begun.
        files: by path.
        journals: the real folder of what is appended to.
        is_cut: whether they lost their ends since the last start; only a start reads them.
    """

    def __init__(self, journals: Path) -> None:
        self.journals = journals
        self.is_full = False
        self.hangs = False
        self.is_cut = False
        self._waiting: list[Callable[[], object]] = []
        self.files: dict[Path, bytes] = {}

    def read(self, path: Path) -> bytes:
        """See ``Disk``."""
        if self.hangs:
            raise HangsError(self._waiting)
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None

    def replace(self, path: Path, content: bytes) -> None:
        """See ``Disk``."""
        self.check()
        self.files[path] = content

    def check(self) -> None:
        """Fails or hangs like a write."""
        if self.hangs:
            raise HangsError(self._waiting)
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def rename(self, path: Path, to: Path) -> None:
        """See ``Disk``."""
        self.files[to] = self.files.pop(path)

    def clear(self) -> None:
        """Another disk has nothing on it."""
        self.files.clear()
        for path in self.journals.glob("*"):
            path.unlink()

    def mend(self) -> None:
        """What hangs goes on."""
        self.hangs = False
        waiting, self._waiting = self._waiting, []
        for again in waiting:
            again()

    def damage(self) -> None:
        """Cuts every file in the middle."""
        self.is_cut = True
        for path in self.journals.glob("*"):
            os.truncate(path, path.stat().st_size // 2)
        self.files = {path: content[: len(content) // 2] for path, content in self.files.items()}
