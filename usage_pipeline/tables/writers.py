"""Who writes to a folder of tables: batch runs or a stream, never both.

A batch run replaces days whole, and a stream adds to them, batch after batch, and never looks back:
what both wrote would be doubled or lost. So each refuses the other's folder. Whoever only reads
(``pipeline report``) may read either.

Example: a folder with ``_streams`` in it is a stream's; one with ``_commits`` is of batch runs; one
with neither is whose comes first.
"""

from sidecar.errors import SidecarError
from usage_pipeline.tables.commits import RECORDS, STREAMS
from usage_pipeline.tables.folder import Folder


class OtherWriterError(SidecarError):
    """The folder is a stream's, or of batch runs."""


def refuse_batch(folder: Folder) -> None:
    """Refuses a batch run in a stream's folder.

    Raises:
        OtherWriterError: it is a stream's.
    """
    if STREAMS in folder.names():
        raise OtherWriterError(
            f"{folder} is written by `pipeline stream`, and a batch run would replace the days that"
            " a stream adds to: give --out another folder, and read the logs into that one"
        )


def refuse_stream(folder: Folder) -> None:
    """Refuses a stream in a folder of batch runs.

    Raises:
        OtherWriterError: batch runs have written there.
    """
    if RECORDS in folder.names():
        raise OtherWriterError(
            f"{folder} has tables of batch runs, which replace the days that a stream would add to:"
            " give --out a folder of its own"
        )
