"""The options by which a command reaches the brokers."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin


@click.command("probe")
@kafka_options
@click.option("--more", default="nothing")
def probe(kafka: KafkaOptions, more: str) -> None:
    """Says whom it would ask."""
    servers = ",".join(map(str, load_kafka_admin(kafka).bootstrap_servers))
    click.echo(f"{servers} {more}")


def run(*args: str, **environ: str) -> Result:
    return CliRunner().invoke(probe, args, env=environ)


def test_kafkas_own_option() -> None:
    """The command's own options are passed through; without it the environment counts."""
    assert "a:1,b:2 yes\n" == run("--bootstrap-server", "a:1,b:2", "--more", "yes").stdout
    assert "e:1 nothing\n" == run(SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS="e:1").stdout


def test_messages_name_the_commands_own_options(tmp_path: Path) -> None:
    """They name Kafka's own file, or the daemon's settings and files."""
    properties = tmp_path / "server.properties"
    properties.write_text("client.quota.callback.static.kafka.admin.bootstrap.servers=p:1\n")
    assert "command config" == load_kafka_admin(KafkaOptions("a:1")).settings_source
    assert "properties" == load_kafka_admin(KafkaOptions(properties=properties)).settings_source


def test_no_address_at_all() -> None:
    """The message has the missing setting and the shorter option, unless settings are meant."""
    hint = "or give --bootstrap-server"
    assert hint in str(run().exception)
    meant = run(SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS="e")
    assert "is not host:port" in str(meant.exception)
    assert hint not in str(meant.exception)


def test_the_daemons_settings_are_not_read_with_it(tmp_path: Path) -> None:
    """The password of one cluster is not sent to another; a mistake there is none here."""
    result = run("--bootstrap-server", "a:1", SIDECAR_KAFKA_ADMIN_SECURITY_PROTOCOL="nonsense")
    assert (0, "a:1 nothing\n") == (result.exit_code, result.stdout)
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=f:1\nacks=1\n")
    result = run("--command-config", str(file), SIDECAR_KAFKA_ADMIN_BOOTSTRAP_SERVERS="e:1")
    assert "f:1 nothing\n" == result.stdout
    assert result.stderr.startswith(f"Note: {file}: ")


@pytest.mark.parametrize("option", ["--config", "--properties"])
def test_options_and_settings_are_not_mixed(option: str) -> None:
    """It could only be guessed which of the two would win."""
    result = run("--bootstrap-server", "a:1", option, "file")
    assert 2 == result.exit_code
    assert "give either --bootstrap-server" in result.stderr
