"""Keeps the tables of a stream and those of batch runs apart, also in one folder.

A batch run replaces whole days of a table, and a stream adds to them. In the same table, rows would
be duplicated or lost. So batch runs refuse to write the tables that a stream writes. They write the
others beside them: replays, recommendations and forecasts continue from what the stream wrote. The
stream refuses a folder in which batch runs came first.

Example: a stream writes silver_request and gold_usage_1s. A batch run adds gold_replay, and a run
that reads request logs is refused.
"""

from collections.abc import Collection

from sidecar.errors import SidecarError
from usage_pipeline.tables.commits import RECORDS, STREAMS
from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import Table


class OtherWriterError(SidecarError):
    """The tables belong to the other kind of writer."""


def refuse_batch(folder: Folder, tables: Collection[Table]) -> None:
    """Check that no stream writes the tables that a batch run is about to write.

    Raises:
        OtherWriterError: a stream writes one of them.
    """
    names = set(folder.names(STREAMS))
    if streamed := sorted(table.name for table in tables if table.name in names):
        raise OtherWriterError(
            f"`pipeline stream` writes {' and '.join(streamed)} in {folder}, and a batch run would"
            " replace the days that it adds to: leave out the request logs (and `pipeline usage`),"
            " or use another folder for --out"
        )


def refuse_stream(folder: Folder) -> None:
    """Check that batch runs did not come first to a folder.

    Raises:
        OtherWriterError: it has tables of batch runs, and none of a stream.
    """
    names = folder.names()
    if RECORDS in names and STREAMS not in names:
        raise OtherWriterError(
            f"{folder} has tables of batch runs, which replace the days that a stream would add to;"
            " use another folder for --out"
        )
