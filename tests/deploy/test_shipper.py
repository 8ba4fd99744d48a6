"""Log shippers' configurations; rsyslog's runs in ``tests/integration/test_shipper.py``."""

import re
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

_FOLDER = Path(__file__).parents[2] / "deploy/shipper"


@pytest.mark.parametrize("name", ["rsyslog.conf", "vector.yaml"])
def test_a_shipper_leaves_out_its_own_requests(name: str) -> None:
    """The client-id that it has is the one that it looks for, as the log writes it."""
    text = (_FOLDER / name).read_text()
    own = re.findall(r'client\.id(?:=|: )"?([\w-]+)', text)
    left_out = re.findall(r'\\?"clientId\\?":\\?"([\w-]+)', text)
    assert ["request-log-shipper"] == own == left_out


def test_vectors_configuration_hangs_together() -> None:
    """Each input is there, and it sends what says where a line is, by the broker's key."""
    found = yaml.safe_load((_FOLDER / "vector.yaml").read_text())
    assert ["request_log"] == found["transforms"]["with_position"]["inputs"]
    assert ["with_position"] == found["sinks"]["topic"]["inputs"]
    assert ".key" == found["sinks"]["topic"]["key_field"]
    source = found["sources"]["request_log"]
    assert ("file", "offset") == (source["file_key"], source["offset_key"])
