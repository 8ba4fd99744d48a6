"""Who writes to a folder of tables."""

from pathlib import Path

import pytest

from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.writers import OtherWriterError, refuse_batch, refuse_stream


def test_each_refuses_the_others_folder(tmp_path: Path) -> None:
    """An empty folder is whose comes first."""
    live, tables = Folder.parse(str(tmp_path / "live")), Folder.parse(str(tmp_path / "tables"))
    for refuse in (refuse_batch, refuse_stream):
        refuse(live)
    live.create("_streams/gold_usage_1s", b"id")
    tables.create("_commits/00000000000000000001.json", b"{}")
    refuse_stream(live)
    refuse_batch(tables)
    with pytest.raises(OtherWriterError, match="belongs to `pipeline stream`"):
        refuse_batch(live)
    with pytest.raises(OtherWriterError, match="has tables of batch runs"):
        refuse_stream(tables)
