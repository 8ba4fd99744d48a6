"""The Compose file: by its specification's schema, and by what broker and sidecar understand."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]  # its types would be a package of their own
from click.testing import CliRunner

from kafka_lab.callback import CALLBACK_PROPERTIES
from sidecar.cli import group
from sidecar.cli.callback.jar import NAME
from sidecar.settings import describe

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "compose" / "compose.yaml"


@pytest.fixture(scope="module")
def services() -> Any:
    return yaml.safe_load(FILE.read_text("utf-8"))["services"]


@pytest.mark.slow
def test_the_specifications_schema_accepts_it() -> None:
    """The schema comes with the checker: nothing is fetched."""
    checker = Path(sys.executable).with_name("check-jsonschema")
    done = subprocess.run(
        [checker, "--builtin-schema", "vendor.compose-spec", FILE],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert 0 == done.returncode, done.stdout


def test_the_sidecars_variables_are_settings(services: Any) -> None:
    """An unknown one would be refused, as would a wrong value."""
    environ = services["sidecar"]["environment"]
    assert set(environ) <= {row.environment for row in describe()}
    result = CliRunner().invoke(group, ["settings"], env=environ)
    assert (0, "") == (result.exit_code, result.stderr)


def test_what_the_sidecar_needs_from_outside_is_there(services: Any) -> None:
    """Its address is one that the published port reaches, and its state is on its volume."""
    environ = services["sidecar"]["environment"]
    host, _, port = environ["SIDECAR_HTTP_LISTEN"].partition(":")
    assert ("0.0.0.0", True) == (host, f"127.0.0.1:{port}:{port}" in services["broker"]["ports"])
    folder = Path(environ["SIDECAR_STATE_FILE"]).parent
    assert [f"state:{folder}"] == services["sidecar"]["volumes"]


def property_of(variable: str) -> str:
    """The property that Kafka's image makes of a variable."""
    name = variable.removeprefix("KAFKA_").lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def test_the_broker_loads_the_callback(services: Any) -> None:
    """It has its two properties, and the jar that the first service has copied."""
    environment = services["broker"]["environment"]
    properties = {property_of(name): value for name, value in environment.items()}
    assert CALLBACK_PROPERTIES == {name: properties[name] for name in CALLBACK_PROPERTIES}
    command = services["callback"]["command"]
    found = group.get_command(click.Context(group), command[0])
    assert isinstance(found, click.Group)
    assert command[1] in found.list_commands(click.Context(found))
    assert f"{command[2]}/{NAME}" == environment["CLASSPATH"]
    assert f"jars:{command[2]}:ro" in services["broker"]["volumes"]
    assert f"jars:{command[2]}" in services["callback"]["volumes"]


@pytest.mark.parametrize("name", ["callback", "sidecar"])
def test_ours_are_shut_in(services: Any, name: str) -> None:
    """Nothing of the image can be written, and all capabilities are dropped."""
    service = services[name]
    assert (True, ["ALL"]) == (service["read_only"], service["cap_drop"])
    assert ["no-new-privileges:true"] == service["security_opt"]
    assert set() == {"cap_add", "devices", "pid", "privileged", "user", "userns_mode"} & set(
        service
    )


def test_ports_are_the_machines_alone(services: Any) -> None:
    """Neither broker nor sidecar authenticates; the sidecar has the broker's network alone."""
    networks = {"broker": None, "callback": "none", "sidecar": "service:broker"}
    assert networks == {name: each.get("network_mode") for name, each in services.items()}
    assert not [name for name, service in services.items() if "networks" in service]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert {"127.0.0.1:7070:7070", "127.0.0.1:9092:9092"} == set(ports)
