"""The state file: replaced whole, checked when read, set aside when damaged.

It is JSON: a version, a checksum over the state, and the state. It is replaced atomically
(``sidecar.state.disk``). A file that can't be used is renamed to ``NAME.damaged`` and logged. It
never prevents a start.

Example: ``{"version": 1, "sha256": "9f86...", "state": {"limit": {"type": "...", "value": 1},
...}}``.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sidecar.control.board import PersistedState
from sidecar.state.disk import Disk, MachineDisk
from sidecar.state.form import StateRecord, from_record, to_record
from sidecar.state.records import problem_of
from sidecar.throttle.rules import Rules


class _Envelope(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    version: Literal[1]
    sha256: str
    state: dict[str, object]


@dataclass(frozen=True, slots=True)
class Damaged:
    """A state file that can't be used.

    Attributes:
        problem: the problem and the file's new name, one line.
    """

    problem: str


@dataclass(frozen=True, slots=True)
class StateFile:
    """A state file.

    Attributes:
        path: the file; its folder must exist.
        rules: the rules by which volumes are judged now.
        disk: the disk with the file.
    """

    path: Path
    rules: Rules
    disk: Disk = field(default_factory=MachineDisk)

    def load(self, now: float) -> PersistedState | Damaged | None:
        """Read the file.

        Args:
            now: epoch seconds.

        Returns:
            The stored state; None without a file; Damaged if the file can't be used.

        Raises:
            OSError: the file can't be read now. It stays, because its content may be whole.
        """
        try:
            raw = self.disk.read(self.path)
        except FileNotFoundError:
            return None
        try:
            envelope = _Envelope.model_validate_json(raw)
            if envelope.sha256 != _checksum(envelope.state):
                return self.set_aside("its checksum does not match")
            form = StateRecord.model_validate(envelope.state)
            return from_record(form, self.rules, now)
        except ValidationError as error:
            return self.set_aside(problem_of(error))

    def save(self, kept: PersistedState, wall: Callable[[float], float]) -> None:
        """Replace the file.

        Args:
            kept: the state to store, in steady seconds.
            wall: steady to epoch seconds.

        Raises:
            OSError: the file or its folder can't be written; the old file is unchanged.
        """
        record = to_record(kept, self.rules, wall)
        # An earlier version refuses unknown keys. Without a stop line, it can read this file too.
        _write(self.disk, self.path, record.model_dump(mode="json", exclude_defaults=True))

    def set_aside(self, problem: str) -> Damaged:
        """Rename the file, which can't be used."""
        # A link stays, so that the next state is written where the link leads.
        path = Path(os.path.realpath(self.path))
        aside = path.with_name(f"{path.name}.damaged")
        try:
            self.disk.rename(path, aside)
        except OSError as error:
            message = f"it can't be set aside: {error.strerror}"
        else:
            message = f"it was set aside as {aside}"
        return Damaged(f"the state file {self.path} is damaged ({problem}); {message}")


def drop_record(path: Path, capability: str) -> bool:
    """Remove a capability's record from the state file of a sidecar that does not run.

    Returns:
        Whether the file had one; without one it stays as it is.

    Raises:
        OSError: the file can't be read or replaced; FileNotFoundError without a file.
        ValueError: the file is damaged.
    """
    disk = MachineDisk()
    envelope = _Envelope.model_validate_json(disk.read(path))
    if envelope.sha256 != _checksum(envelope.state):
        raise ValueError("its checksum does not match")
    records = envelope.state.get("retained")
    if not isinstance(records, dict) or capability not in records:
        return False
    del records[capability]
    _write(disk, path, envelope.state)
    return True


def _write(disk: Disk, path: Path, state: dict[str, object]) -> None:
    content = {"version": 1, "sha256": _checksum(state), "state": state}
    disk.replace(path, json.dumps(content).encode())


def _checksum(state: object) -> str:
    canonical = json.dumps(state, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
