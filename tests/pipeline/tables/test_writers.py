"""A folder of tables is a stream's or of batch runs."""

import pytest

from sidecar.pipeline.tables.writers import MARK, OtherWriterError, refuse_batch, refuse_stream


def test_a_batch_leaves_a_streams_folder_alone() -> None:
    """It would replace days that the stream adds to."""
    with pytest.raises(OtherWriterError, match="live is written by `pipeline stream`"):
        refuse_batch("live", ["silver_request", MARK])
    refuse_batch("tables", ["silver_request", "_lock"])


def test_a_stream_leaves_the_tables_of_batch_runs_alone() -> None:
    """It continues its own; a new folder belongs to whoever comes first."""
    with pytest.raises(OtherWriterError, match="tables has tables of batch runs"):
        refuse_stream("tables", ["_lock", "dim_topic"])
    refuse_stream("live", ["gold_usage_1s", MARK])
    refuse_stream("live", ["_lock"])
