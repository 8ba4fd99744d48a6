"""Who writes to a folder of tables: batch runs or a stream, never both.

A batch run replaces days whole, and a stream adds to them, batch after batch, and never looks back:
what both wrote would be doubled or lost. So a stream marks its folder, and each refuses the
other's. Whoever only reads (``pipeline report``) may read either.

Example: a folder with ``_streamed`` in it is a stream's; one with ``silver_request`` and no such
mark is of batch runs; one with neither is whose comes first.
"""

from collections.abc import Iterable
from typing import Final

from sidecar.errors import SidecarError
from sidecar.pipeline.tables.schemas import TABLES

MARK: Final = "_streamed"
"""The mark, a file."""
_TABLES: Final = frozenset(table.name for table in TABLES)


class OtherWriterError(SidecarError):
    """The folder is a stream's, or of batch runs."""


def refuse_batch(root: str, names: Iterable[str]) -> None:
    """Refuses a batch run in a stream's folder.

    Raises:
        OtherWriterError: it is a stream's.
    """
    if MARK in names:
        raise OtherWriterError(
            f"{root} is written by `pipeline stream`, and a batch run would replace the days that a"
            " stream adds to: give --out another folder, and read the logs into that one"
        )


def refuse_stream(root: str, names: Iterable[str]) -> None:
    """Refuses a stream in a folder of batch runs.

    Raises:
        OtherWriterError: batch runs have written there.
    """
    found = set(names)
    if MARK not in found and not found.isdisjoint(_TABLES):
        raise OtherWriterError(
            f"{root} has tables of batch runs, which replace the days that a stream would add to:"
            " give --out a folder of its own"
        )
