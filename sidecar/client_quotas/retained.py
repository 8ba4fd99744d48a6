"""What this capability keeps over a restart: the originals of the quotas that it has lowered.

Example: ``{"kept": [{"entity": {"user": "alice"}, "original": 1e7, "base": 1e7}]}``; a quota that
was not there has the original null, and a default has the name null.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import Field

from sidecar.control.board import Board
from sidecar.quotas.entities import Entity
from sidecar.quotas.kept_originals import Kept
from sidecar.state.records import Record, restored

NAME: Final = "client_quotas"
"""The capability's name, also that of its record."""


class _KeptRecord(Record):
    entity: dict[str, str | None]
    original: float | None = Field(gt=0.0)
    base: float = Field(gt=0.0)


class _RetainedRecord(Record):
    kept: list[_KeptRecord]


def read_kept(board: Board) -> dict[Entity, Kept]:
    """The originals in the state file, without entities that no Kafka has."""
    record = restored(board.snapshot.memory, NAME, _RetainedRecord)
    kept: dict[Entity, Kept] = {}
    for each in () if record is None else record.kept:
        try:
            kept[Entity.of(each.entity)] = Kept(each.original, each.base)
        except ValueError:
            continue
    return kept


def retain(board: Board, kept: Mapping[Entity, Kept]) -> None:
    """Record the originals."""
    entries = [
        {"entity": entity.parts(), "original": each.original, "base": each.base}
        for entity, each in kept.items()
    ]
    board.retain(NAME, {"kept": entries})
