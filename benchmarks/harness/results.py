"""Measured runs as files, so that tables and pictures can be made again without measuring again.

A run is a dataclass. It becomes ``PART.ARM.NAME.json``; the name is the round or the client.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from kafka_lab.series import Series

T = TypeVar("T")
_SETTINGS: Final = "settings.json"


def _series(value: Any) -> Series:  # noqa: ANN401 - a series, or what JSON makes of its samples
    return value if isinstance(value, Series) else Series((at, each) for at, each in value)


def _samples(series: Series) -> list[tuple[float, float]]:
    return [(round(at, 3), value) for at, value in series]


Sampled = Annotated[Series, PlainValidator(_series), PlainSerializer(_samples)]
"""A field of a run that is a series; its times go to the file in whole milliseconds."""


class Results:
    """A folder of runs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def save(self, stem: str, run: Any) -> None:  # noqa: ANN401 - any dataclass
        """Write a run to ``PART.ARM.NAME`` (``stem``)."""
        self._file(stem).write_bytes(TypeAdapter(type(run)).dump_json(run))

    def load(self, kind: type[T], pattern: str) -> list[T]:
        """The runs whose ``PART.ARM.NAME`` matches, by their names."""
        adapter = TypeAdapter(kind)
        return [adapter.validate_json(file.read_bytes()) for file in self._files(pattern)]

    def by_arm(self, kind: type[T], part: str, arms: Iterable[str]) -> dict[str, list[T]]:
        """Arm -> its runs in a part; arms without a run are left out."""
        found = {arm: self.load(kind, f"{part}.{arm}.*") for arm in arms}
        return {arm: runs for arm, runs in found.items() if runs}

    def clear(self, pattern: str) -> None:
        """Remove runs: what cannot be measured now must not appear as if it had been."""
        for file in self._files(pattern):
            file.unlink()

    def stems(self, pattern: str = "*.*.*") -> set[str]:
        """Which runs there are."""
        return {file.stem for file in self._files(pattern)}

    def set_machine(self, part: str, lines: Sequence[str]) -> None:
        """Keep what a reader of a part's figures has to know of the machine."""
        self._file(f"machine.{part}").write_text(json.dumps(lines), encoding="utf-8")

    def machine(self, part: str) -> list[str]:
        """The same lines again; none of a part that was not measured."""
        file = self._file(f"machine.{part}")
        return list(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else []

    @property
    def settings(self) -> dict[str, Any] | None:
        """The settings that all runs were measured with; None before the first."""
        file = self.folder / _SETTINGS
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None

    @settings.setter
    def settings(self, settings: dict[str, Any]) -> None:
        (self.folder / _SETTINGS).write_text(json.dumps(settings), encoding="utf-8")

    def _file(self, stem: str) -> Path:
        return self.folder / f"{stem}.json"

    def _files(self, pattern: str) -> list[Path]:
        return sorted(self.folder.glob(f"{pattern}.json"))
