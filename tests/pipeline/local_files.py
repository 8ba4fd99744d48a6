"""Files on this machine's disk, that can be made to die before any step."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


class KilledError(Exception):
    """The process was killed."""


@dataclass(slots=True)
class LocalFiles:
    """A ``Files`` over pathlib.

    Attributes:
        by_copy: whether folders move file after file, as in object storage.
    """

    by_copy: bool = False
    _steps_left: int | None = field(default=None, init=False)

    @contextmanager
    def killed_after(self, steps: int) -> Iterator[list[bool]]:
        """Kills the process after so many steps that change something; the list says whether."""
        died: list[bool] = []
        self._steps_left = steps
        try:
            yield died
        except KilledError:
            died.append(True)
        finally:
            self._steps_left = None

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def names(self, path: str) -> list[str]:
        return sorted(each.name for each in Path(path).iterdir()) if Path(path).is_dir() else []

    def move(self, source: str, target: str) -> None:
        there = Path(target)
        assert not there.exists(), target
        if self.by_copy and Path(source).is_dir():
            self._move_by_copy(Path(source), there)
            return
        self._step()
        there.parent.mkdir(parents=True, exist_ok=True)
        Path(source).rename(there)

    def remove(self, path: str) -> None:
        self._step()
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def read(self, path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    def create(self, path: str, text: str) -> bool:
        self._step()
        if Path(path).exists():
            return False
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
        return True

    def local(self, path: str) -> Path | None:
        return Path(path)

    def _move_by_copy(self, source: Path, target: Path) -> None:
        files = [each for each in sorted(source.rglob("*")) if each.is_file()]
        for each in files:
            self._step()
            copy = target / each.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(each, copy)
        for each in files:
            self._step()
            each.unlink()
        self._step()
        shutil.rmtree(source)

    def _step(self) -> None:
        if self._steps_left is None:
            return
        if self._steps_left == 0:
            raise KilledError
        self._steps_left -= 1
