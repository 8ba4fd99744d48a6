"""A TOML file that is read at the start and after each change.

An invalid file prevents the start. If the file becomes invalid later, the sidecar logs that once
and keeps the previous contents: a typo must neither throttle a client nor release one. A user that
must not act by contents which are no longer in the file asks ``is_current``. A volume of Kubernetes
is followed through its symlinks: when ``..data`` is swapped, the file is another.

Example: a file is changed at 0 s. The check at 1 s sees that, and the check at 2 s reads it.
"""

import asyncio
import logging
import os
import stat
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar

from sidecar.errors import SettingsError
from sidecar.threads import OwnThreads

_log = logging.getLogger(__name__)

_CHECK_S: Final = 1.0
_LARGEST_BYTES: Final = 4 << 20
_Stamp = tuple[int, int, int, int]

T = TypeVar("T")


class FollowedFile(ABC, Generic[T]):
    """A file that is followed.

    Attributes:
        what: its contents, for the log, such as "producer id quotas".
        meanwhile: what a problem leads to, for the log; "": the contents stay as they were.
        contents: the last ones that were valid; there after ``load``.
        problem: why it can't be read now; "" if it can.
    """

    what: ClassVar[str]
    meanwhile: ClassVar[str] = ""
    contents: T

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.problem = ""
        self._read: _Stamp | None = None
        self._valid: _Stamp | None = None
        self._changing: _Stamp | None = None

    @abstractmethod
    def parse(self, document: dict[str, Any]) -> T:
        """Return the contents; raises SettingsError if they are invalid."""

    def load(self) -> T:
        """Read the file.

        Raises:
            SettingsError: the file can't be read or is invalid; it names the place.
        """
        self._read = None
        try:
            text, self._read = _contents(self.path)
            document = tomllib.loads(text.decode("utf-8-sig"))
        except OSError as error:
            raise SettingsError((f"{self.path} can't be read: {error.strerror}",)) from error
        except (ValueError, RecursionError) as error:
            # tomllib raises other errors for numbers of thousands of digits and for deep nesting.
            raise SettingsError((f"{self.path} is not TOML: {error}",)) from error
        # In this order, since ``is_current`` may be called by another thread.
        self.contents = self.parse(document)
        self._valid = self._read
        return self.contents

    def is_current(self) -> bool:
        """Whether the file is still the one that ``contents`` were read from."""
        try:
            return _stamp(self.path.stat()) == self._valid
        except OSError:
            return False

    async def run(self, changed: Callable[[T], None]) -> None:
        """Call ``changed`` after each change of the file, until cancelled."""
        threads = OwnThreads(self.what)
        while True:
            await asyncio.sleep(_CHECK_S)
            contents = await threads.call(self.read_change)
            if contents is not None:
                changed(contents)

    def read_change(self) -> T | None:
        """Return the contents after a change, once two checks in a row see the same file.

        A problem is logged once.
        """
        try:
            now = _stamp(self.path.stat())
            if now == self._read:
                return None
            before, self._changing = self._changing, now
            if now != before:
                return None
            contents = self.load()
        except OSError as error:
            self._read = self._changing = None
            self._stay(f"{self.path} can't be read: {error.strerror}")
        except SettingsError as error:
            self._stay("; ".join(error.problems))
        else:
            self.problem = ""
            _log.info("read the %s of %s again", self.what, self.path)
            return contents
        return None

    def _stay(self, problem: str) -> None:
        if problem != self.problem:
            meanwhile = self.meanwhile or f"the {self.what} stay as they were"
            _log.warning("%s; %s", problem, meanwhile)
        self.problem = problem


def _contents(path: Path) -> tuple[bytes, _Stamp]:
    # Without O_NONBLOCK, opening a named pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            contents = file.read(_LARGEST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(contents) > _LARGEST_BYTES:
        raise OSError(0, f"it has more than {_LARGEST_BYTES:,} bytes")
    # The state before the read, so that the next check sees a later write.
    return contents, _stamp(status)


def _stamp(status: os.stat_result) -> _Stamp:
    # A change of owner or mode counts too, because the file may be readable now.
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
