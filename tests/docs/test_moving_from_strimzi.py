"""docs/moving-from-strimzi.md: who reads which of the plugin's properties, and the example."""

from pathlib import Path

import pytest

from sidecar.settings import keys, load
from sidecar.settings.foreign import PLUGIN_NOTICES
from sidecar.settings.properties import read_broker_properties
from tests.docs.markdown import ROOT
from tests.docs.moving_from_strimzi import EXAMPLE, ROWS
from tests.sidecar.settings.support import STATIC, problems

CALLBACK = ROOT / "deploy/quota-callback/src/main/java/throttlesidecar/settings/Settings.java"
VALUES = {
    "storage.check-interval": "60",
    "storage.per.volume.limit.min.available.bytes": "1",
    "storage.per.volume.limit.min.available.ratio": "0.5",
    "throttle.factor.fallback": "1.0",
    "throttle.factor.validity.duration": "PT5M",
    "kafka.admin.bootstrap.servers": "a:1",
}
"""A good value of each property that the sidecar reads."""


def written(folder: Path, text: str) -> Path:
    """A properties file with this text."""
    file = folder / "server.properties"
    file.write_text(text, encoding="iso-8859-1")
    return file


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["property"])
def test_who_reads_a_property(tmp_path: Path, row: dict[str, str]) -> None:
    """The sidecar takes a value for it, and says of all others that they have no effect."""
    name = row["property"]
    line = f"{STATIC}{name}={VALUES.get(name, '1')}\n"
    reading = read_broker_properties(written(tmp_path, line), {})
    # The callback's table in its own Java source; its tests read values by these names.
    java = CALLBACK.read_text(encoding="utf-8")
    callback = f'"{name}"' in java or f'STATIC_PREFIX + "{name}"' in java
    by = "sidecar" if reading.entries else "callback" if callback else "nobody"
    assert ([], row["read here by"]) == (reading.problems, by)
    assert (by != "sidecar") == bool(reading.notices)


def test_every_property_is_in_the_table() -> None:
    """It has all names of the plugin's that are known here, and the sidecar's own properties."""
    ours = {keys.dotted(field) for field in keys.FIELDS if keys.property_key(field)}
    ours = {name for name in ours if not name.startswith(keys.ADMIN_PREFIX)}
    reported = {row["property"] for row in ROWS}
    # The interval is there in the plugin's spelling, and ours in that row's text.
    ours = {name.replace("check.interval", "check-interval") for name in ours}
    assert ours | PLUGIN_NOTICES.keys() | {"kafka.admin.bootstrap.servers"} == reported


def test_the_example_is_read(tmp_path: Path) -> None:
    """The sidecar starts with it as it stands, and says which keys are the callback's."""
    found = load(environ={}, properties=written(tmp_path, EXAMPLE))
    assert 5.0 == found.settings.check_interval_s
    assert found.settings.kafka_admin is not None
    assert ("SSL", 5368709120) == (
        found.settings.kafka_admin.security_protocol,
        getattr(found.settings.limit, "value", None),
    )
    reported = {notice.partition(" ")[0].removeprefix(STATIC) for notice in found.notices}
    assert {"produce", "fetch", "excluded.principal.name.list"} == reported


def test_a_comment_after_a_value_is_refused(tmp_path: Path) -> None:
    """Java makes it a part of the value, as in the example of the plugin's README."""
    text = EXAMPLE.replace("=localhost:9092", "=localhost:9092 # required")
    assert EXAMPLE != text
    (problem,) = [
        each for each in problems({}, properties=written(tmp_path, text)) if "bootstrap" in each
    ]
    assert "'localhost:9092 # required' is not host:port" in problem
