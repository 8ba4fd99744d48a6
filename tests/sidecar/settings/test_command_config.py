"""A command reaches the brokers by Kafka's own options, or by the daemon's settings."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from sidecar.errors import SettingsError
from sidecar.formats.jaas import PLAIN
from sidecar.settings import (
    HostPort,
    KafkaAdmin,
    read_command_config,
    read_daemon_admin,
)
from tests.sidecar.settings.support import ADMIN, STATIC

SCRAM = (
    'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="p";'
)


def read(
    tmp_path: Path, text: str, bootstrap_server: str | None = "b:9092"
) -> tuple[KafkaAdmin, tuple[str, ...]]:
    file = tmp_path / "client.properties"
    file.write_text(text)
    return read_command_config(bootstrap_server, file, {"HUNTER": "hunter2"})


def problem(read: Callable[..., object], *args: object) -> str:
    """The one problem with what is read."""
    with pytest.raises(SettingsError) as refused:
        read(*args)
    (line,) = refused.value.problems
    return line


class TestCommandConfig:
    def test_addresses_alone_are_enough(self) -> None:
        """The protocol is plain text, as with Kafka's tools."""
        expected = KafkaAdmin(
            bootstrap_servers=(HostPort("a", 9092), HostPort("::1", 9093)),
            settings_source="command config",
        )
        assert (expected, ()) == read_command_config("a:9092,[::1]:9093", None, {})

    def test_a_file_as_kafkas_tools_take_it(self, tmp_path: Path) -> None:
        """It has the admin client's keys, without a prefix."""
        text = (
            "bootstrap.servers=c:9094\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
            f"sasl.jaas.config={SCRAM}\nssl.truststore.type=PEM\n"
            "ssl.truststore.location=/etc/kafka/ca.pem\nclient.id=ops\n"
        )
        admin, _ = read(tmp_path, text, None)
        assert (HostPort("c", 9094),) == admin.bootstrap_servers
        assert ("SASL_SSL", "SCRAM-SHA-512", "ann") == (
            admin.security_protocol,
            admin.sasl_mechanism,
            admin.sasl_username,
        )
        assert admin.sasl_password is not None
        assert "p" == admin.sasl_password.get_secret_value()
        assert Path("/etc/kafka/ca.pem") == admin.ssl_truststore_location
        assert "ops" == admin.client_id

    def test_the_option_wins_over_the_file(self, tmp_path: Path) -> None:
        """Kafka's tools do it so."""
        admin, _ = read(tmp_path, "bootstrap.servers=c:9094\n", "b:9092")
        assert (HostPort("b", 9092),) == admin.bootstrap_servers

    def test_what_producers_and_consumers_need_is_reported_in_one_notice(
        self, tmp_path: Path
    ) -> None:
        """Such a file is often shared; the admin client's own tuning is not worth a word."""
        _, notices = read(tmp_path, "acks=all\ngroup.id=g\nretries=3\n")
        assert (f"{tmp_path / 'client.properties'}: no effect here: acks, group.id",) == (notices)

    def test_an_underscore_is_no_dot(self, tmp_path: Path) -> None:
        """Java does not know such a key, so it has no effect here either."""
        admin, notices = read(tmp_path, "security_protocol=SSL\n")
        assert "PLAINTEXT" == admin.security_protocol
        assert notices[0].endswith(": security_protocol")

    def test_no_address_is_a_problem(self, tmp_path: Path) -> None:
        """The message names the option, which is shorter than a line in the file."""
        line = problem(read, tmp_path, "client.id=ops\n", None)
        assert line.startswith("--bootstrap-server: is required")

    def test_a_wrong_option_names_the_option(self) -> None:
        """The message names no key of a file that was not passed."""
        line = problem(read_command_config, "nowhere", None, {})
        assert line.startswith("--bootstrap-server (command line): 'nowhere' is not host:port")

    def test_what_is_missing_is_reported_by_its_name_in_the_file(self, tmp_path: Path) -> None:
        """It has no prefix of the plugin's, nor an environment variable, which would do nothing."""
        line = problem(read, tmp_path, "security.protocol=SASL_PLAINTEXT\n")
        assert line.startswith("sasl.mechanism in --command-config: ")
        assert "SIDECAR_" not in line

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("sasl.jaas.config=${file:/gone:jaas}\n", "/gone can't be read: No such file"),
            ("security.providers=com.example.P\n", "security.providers"),
            ("a=\\u12\n", "can't be read: line 1"),
        ],
    )
    def test_what_can_not_be_used_is_refused(
        self, tmp_path: Path, text: str, expected: str
    ) -> None:
        """A placeholder would be taken for the password itself."""
        assert expected in problem(read, tmp_path, text)

    def test_a_reference_is_replaced(self, tmp_path: Path) -> None:
        """Lines that name its provider are no keys without effect."""
        text = (
            "sasl.mechanism=PLAIN\nsecurity.protocol=SASL_SSL\nconfig.providers=env\n"
            "config.providers.env.class="
            "org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
            f"sasl.jaas.config={PLAIN} required username=ann password=${{env:HUNTER}};\n"
        )
        admin, notices = read(tmp_path, text)
        assert (SecretStr("hunter2"), ()) == (admin.sasl_password, notices)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        """It is one line, and says of nothing that it is missing from the file."""
        expected = (
            f"the command config {tmp_path / 'gone'} can't be read: No such file or directory"
        )
        assert expected == problem(read_command_config, None, tmp_path / "gone", {})


class TestDaemonAdmin:
    def test_it_needs_no_limit(self) -> None:
        """It needs only Kafka's settings: a command about quotas asks for no volumes."""
        admin = read_daemon_admin({f"{ADMIN}BOOTSTRAP_SERVERS": "b:9092"}, None, None)
        assert (HostPort("b", 9092),) == admin.bootstrap_servers

    def test_the_files_are_read_in_the_daemons_order(self, tmp_path: Path) -> None:
        """The environment wins over properties, properties over TOML."""
        toml = tmp_path / "sidecar.toml"
        toml.write_text(
            '[kafka_admin]\nbootstrap_servers = "t:1"\nclient_id = "t"\nsecurity_protocol = "SSL"\n'
        )
        properties = tmp_path / "server.properties"
        properties.write_text(
            f"{STATIC}kafka.admin.bootstrap.servers=p:1\n{STATIC}kafka.admin.client.id=p\n"
        )
        environ = {f"{ADMIN}BOOTSTRAP_SERVERS": "e:1"}
        admin = read_daemon_admin(environ, toml, properties)
        assert (HostPort("e", 1), "p", "SSL") == (
            admin.bootstrap_servers[0],
            admin.client_id,
            admin.security_protocol,
        )

    def test_no_brokers_is_a_problem(self) -> None:
        """The message has the names by which they can be set."""
        assert f"{ADMIN}BOOTSTRAP_SERVERS" in problem(read_daemon_admin, {}, None, None)

    def test_other_problems_are_reported(self) -> None:
        """An unknown key may be a misspelt one of Kafka's."""
        with pytest.raises(SettingsError) as refused:
            read_daemon_admin({f"{ADMIN}BOOTSTRAP_SERVER": "b:9092"}, None, None)
        assert any(f"{ADMIN}BOOTSTRAP_SERVER " in line for line in refused.value.problems)
