"""The Compose file's broker and sidecar, as processes: what its variables come to.

The broker's go through the program that Kafka's own image runs before it starts the broker.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own

from kafka_lab.jars import DEFAULT_VERSION, jars, java
from kafka_lab.ports import Ports
from sidecar.cli.callback.jar import callback_jar
from sidecar.formats.cache_folder import cache_folder
from tests.support.daemon import started
from tests.support.waiting import listens, seen

FILE = Path(__file__).parents[2] / "deploy" / "compose" / "compose.yaml"
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
"""Kafka's image has one of its own."""


@contextmanager
def broker(environ: Mapping[str, str], libraries: Path, folder: Path) -> Iterator[None]:
    """Formats and starts it as Kafka's image does."""
    command = [java(os.environ), "-Xmx384m", "-cp", f"{callback_jar()}:{libraries}/*"]
    variables = {"PATH": os.environ["PATH"], "CLUSTER_ID": CLUSTER_ID, **environ}
    for name in ("default", "mounted", "final"):
        (folder / name).mkdir()
    for name in ("server.properties", "log4j2.yaml", "tools-log4j2.yaml"):
        (folder / "default" / name).write_text("\n")
    places = [f"--{name}-configs-dir={folder / name}" for name in ("default", "mounted", "final")]
    setup = [*command, "kafka.docker.KafkaDockerWrapper", "setup", *places]
    done = subprocess.run(
        setup, env=variables, capture_output=True, text=True, check=False, timeout=60
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    log = folder / "broker.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "kafka.Kafka", str(folder / "final" / "server.properties")],
            env=variables,
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()
        # Shown when the test has failed.
        print(log.read_text())


@pytest.fixture
def ports() -> Iterator[Mapping[str, str]]:
    """A free port for each of the file's."""
    with Ports() as reserved:
        yield {port: str(reserved.reserve()) for port in ("9092", "9093", "7070")}


def placed(
    environ: Mapping[str, str], ports: Mapping[str, str], folders: Mapping[str, Path]
) -> dict[str, str]:
    """Variables with this machine's ports and folders in place of the containers'."""
    text = json.dumps(environ)
    for port, ours in ports.items():
        text = text.replace(f":{port}", f":{ours}")
    for folder, here in folders.items():
        text = text.replace(folder, str(here))
    found: dict[str, str] = json.loads(text)
    return found


async def test_the_broker_obeys_the_sidecar_beside_it(
    tmp_path: Path, ports: Mapping[str, str]
) -> None:
    """It formats and starts with the callback, which asks the sidecar, which sees its volume."""
    services = yaml.safe_load(FILE.read_text("utf-8"))["services"]
    folders = {"/var/lib/kafka": tmp_path, "/var/lib/throttle-sidecar": tmp_path}
    environ = placed(services["broker"]["environment"], ports, folders)
    # By default it is the one that the file has.
    url = f"http://127.0.0.1:{ports['7070']}"
    environ["KAFKA_CLIENT_QUOTA_CALLBACK_SIDECAR_URL"] = url
    own = placed(services["sidecar"]["environment"], ports, folders)
    libraries = await jars(DEFAULT_VERSION, cache_folder(os.environ))
    with broker(environ, libraries, tmp_path):
        async with started(tmp_path, own) as daemon:
            await seen("the broker listens", lambda: listens(int(ports["9092"])))
            await daemon.decides(1.0)
            await seen(
                "a reader",
                lambda: daemon.get("/v1/readers"),
                lambda found: bool(found["readers"]),
            )
            (reader,) = (await daemon.get("/v1/readers"))["readers"]
            assert DEFAULT_VERSION == reader["kafka_version"]
            (volume,) = (await daemon.get("/v1/volumes"))["volumes"]
            assert (1, str(tmp_path / "data")) == (volume["broker_id"], volume["log_dir"])
