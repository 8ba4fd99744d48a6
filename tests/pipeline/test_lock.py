"""The lock on this machine's disk."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from sidecar.pipeline.files import Files
from sidecar.pipeline.lock import UnwritableError, locked


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    """In a line that names it, and what is wrong."""
    there = tmp_path / "tables"
    there.write_text("")
    taken = locked(str(there), Mock(spec=Files), there, "me")
    with pytest.raises(UnwritableError, match=r"/tables: File exists; give --out another folder"):
        taken.__enter__()
