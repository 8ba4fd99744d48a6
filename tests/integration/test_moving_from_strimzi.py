"""docs/moving-from-strimzi.md against Strimzi's plugin itself, by its own classes."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.harness.throttles import PEER
from kafka_lab.jars import DEFAULT_VERSION, jars, java
from sidecar.cli.callback.jar import callback_jar
from sidecar.formats.cache_folder import cache_folder
from sidecar.settings import load
from tests.docs.moving_from_strimzi import EXAMPLE, ROWS
from tests.sidecar.settings.support import STATIC

BOOTSTRAP = f"{STATIC}kafka.admin.bootstrap.servers=localhost:9092\n"


async def by_the_plugin(folder: Path, text: str) -> dict[str, str]:
    """What the plugin, and then our callback, makes of a properties file."""
    file = folder / "server.properties"
    file.write_text(text, encoding="iso-8859-1")
    libraries = await jars(DEFAULT_VERSION, cache_folder(os.environ))
    classes = [*await PEER.jars(), callback_jar(), f"{libraries}/*"]
    program = Path(__file__).with_name("PluginSettings.java")
    done = await asyncio.to_thread(
        subprocess.run,
        [java(os.environ), "-cp", ":".join(map(str, classes)), str(program), str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    rows = (line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    return {name.removeprefix(STATIC): value for name, value in rows}


@pytest.mark.slow
async def test_the_plugins_own_defaults(tmp_path: Path) -> None:
    """The table has all of the plugin's properties, with the defaults that its classes have."""
    message = {row["property"]: row["the plugin's default"].strip("`") for row in ROWS}
    by_its_client = {"kafka.admin.bootstrap.servers", "kafka.clientIdPrefix"}
    found = await by_the_plugin(tmp_path, BOOTSTRAP)
    assert "localhost:9092" == found.pop("> bootstrap.servers")
    assert {name: message[name] for name in message.keys() - by_its_client} == found


async def test_both_read_the_example_alike(tmp_path: Path) -> None:
    """Limit, interval, fallback, validity and whom to ask first are the same to both."""
    theirs = await by_the_plugin(tmp_path, EXAMPLE)
    ours = load(environ={}, properties=tmp_path / "server.properties").settings
    assert ours.kafka_admin is not None
    address = ours.kafka_admin.bootstrap_servers[0]
    expected = {
        "storage.per.volume.limit.min.available.bytes": str(getattr(ours.limit, "value", None)),
        "storage.check-interval": f"{ours.check_interval_s:.0f}",
        "throttle.factor.fallback": str(ours.fallback),
        "throttle.factor.validity.duration": f"PT{ours.validity_s / 60:.0f}M",
        "> bootstrap.servers": str(address),
        "> security.protocol": ours.kafka_admin.security_protocol,
        "> ssl.truststore.location": str(ours.kafka_admin.ssl_truststore_location),
    }
    assert expected == {name: theirs[name] for name in expected}


@pytest.mark.parametrize(
    ("line", "message"),
    [("produce=0", "must be more than 0"), ("excluded.principal.name.list=User:", "must be names")],
)
async def test_what_the_callback_refuses(tmp_path: Path, line: str, message: str) -> None:
    """It refuses keys of the plugin that it reads; the test above shows the unchanged example."""
    with pytest.raises(AssertionError, match=message):
        await by_the_plugin(tmp_path, f"{BOOTSTRAP}{STATIC}{line}\n")
