"""Keeps the folders of batch runs and streams separate.

A batch run replaces whole days, and a stream adds to them. In the same folder, rows would be
duplicated or lost, so each refuses the other's folder. ``pipeline report`` reads both.

Example: a folder with ``_streams`` belongs to a stream, and one with ``_commits`` to batch runs. A
folder with neither belongs to its first writer.
"""

from sidecar.errors import SidecarError
from usage_pipeline.tables.commits import RECORDS, STREAMS
from usage_pipeline.tables.folder import Folder


class OtherWriterError(SidecarError):
    """The folder belongs to the other kind of writer."""


def refuse_batch(folder: Folder) -> None:
    """Check that a folder does not belong to a stream.

    Raises:
        OtherWriterError: it belongs to a stream.
    """
    if STREAMS in folder.names():
        raise OtherWriterError(
            f"{folder} belongs to `pipeline stream`, and a batch run would replace the days that it"
            " adds to; use another folder for --out"
        )


def refuse_stream(folder: Folder) -> None:
    """Check that a folder does not belong to batch runs.

    Raises:
        OtherWriterError: it belongs to batch runs.
    """
    if RECORDS in folder.names():
        raise OtherWriterError(
            f"{folder} has tables of batch runs, which replace the days that a stream would add to;"
            " use another folder for --out"
        )
