"""Who writes to a folder of tables."""

from pathlib import Path

import pytest

from usage_pipeline.tables.folder import Folder
from usage_pipeline.tables.schemas import GOLD_REPLAY, GOLD_USAGE_1S, QUARANTINE
from usage_pipeline.tables.writers import OtherWriterError, refuse_batch, refuse_stream

USAGE, REPLAY = {GOLD_USAGE_1S, QUARANTINE}, {GOLD_REPLAY}


def test_each_refuses_the_others_tables(tmp_path: Path) -> None:
    """An empty folder is whose comes first; runs write other tables beside a stream's."""
    live, tables = Folder.parse(str(tmp_path / "live")), Folder.parse(str(tmp_path / "tables"))
    refuse_batch(live, USAGE)
    refuse_stream(live)
    live.create("_streams/gold_usage_1s", b"id")
    tables.create("_commits/00000000000000000001.json", b"{}")
    refuse_batch(tables, USAGE)
    refuse_batch(live, REPLAY)
    with pytest.raises(OtherWriterError, match=r"`pipeline stream` writes gold_usage_1s in"):
        refuse_batch(live, USAGE | REPLAY)
    with pytest.raises(OtherWriterError, match="has tables of batch runs"):
        refuse_stream(tables)
    live.create("_commits/00000000000000000001.json", b"{}")
    refuse_stream(live)
