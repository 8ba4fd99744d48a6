"""SASL: the credentials, wherever they are set."""

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from sidecar.formats.jaas import IAM, KERBEROS, OAUTHBEARER, PLAIN, SCRAM
from sidecar.settings import token_path
from tests.sidecar.settings.support import ADMIN, admin, problem

URL = f"{ADMIN}SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL"
CLIENT = f"{ADMIN}SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT"
SCOPE = f"{ADMIN}SASL_OAUTHBEARER_SCOPE"


def sasl(mechanism: str, **more: str) -> dict[str, str]:
    """An environment with SASL_SSL, this mechanism and these of its settings."""
    return {
        f"{ADMIN}SECURITY_PROTOCOL": "SASL_SSL",
        f"{ADMIN}SASL_MECHANISM": mechanism,
        **{f"{ADMIN}SASL_{name.upper()}": value for name, value in more.items()},
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_are_settings(mechanism: str) -> None:
    """The two settings of our own are enough for PLAIN and SCRAM."""
    found = admin(sasl(mechanism, username="ann", password="hunter2"))
    expected = ("SASL_SSL", mechanism, "ann", SecretStr("hunter2"))
    assert expected == (
        found.security_protocol,
        found.sasl_mechanism,
        found.sasl_username,
        found.sasl_password,
    )


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)],
)
def test_user_and_password_are_in_the_jaas_config(mechanism: str, module: str) -> None:
    """The Java client's own form works as it is."""
    jaas = f'{module} required username="ann" password="hunter2";'
    found = admin(sasl(mechanism, jaas_config=jaas))
    assert ("ann", SecretStr("hunter2")) == (found.sasl_username, found.sasl_password)


def test_it_records_how_user_and_password_were_set(tmp_path: Path) -> None:
    """The message that the brokers refuse them needs it."""
    file = tmp_path / "password"
    file.write_text("hunter2")
    user = f"{ADMIN}SASL_USERNAME"
    found = admin(sasl("PLAIN", username="ann", password="hunter2"))
    assert (user, f"{ADMIN}SASL_PASSWORD") == found.sasl_setting_names
    found = admin(sasl("PLAIN", username="ann", password_file=str(file)))
    assert (user, f"{ADMIN}SASL_PASSWORD_FILE") == found.sasl_setting_names
    found = admin(sasl("PLAIN", jaas_config=f'{PLAIN} required username="a" password="b";'))
    assert (f"{ADMIN}SASL_JAAS_CONFIG",) == found.sasl_setting_names


@pytest.mark.parametrize("text", ["hunter2", "hunter2\n", "\ufeffhunter2\r\n"])
def test_the_password_is_in_a_file(tmp_path: Path, text: str) -> None:
    """The line end and the byte order mark that editors add aren't part of it."""
    file = tmp_path / "password"
    file.write_bytes(text.encode())
    found = admin(sasl("PLAIN", username="ann", password_file=str(file)))
    assert SecretStr("hunter2") == found.sasl_password


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_end_in_the_environment_is_no_part_of_a_user_or_password(end: str) -> None:
    """A Secret that was made with ``echo`` has one."""
    found = admin(sasl("PLAIN", username=f"ann{end}", password=f"hunter2{end}"))
    assert ("ann", SecretStr("hunter2")) == (found.sasl_username, found.sasl_password)


def test_a_password_of_a_line_end_alone_is_empty() -> None:
    """It is named as any empty value is."""
    assert "is empty" in problem(sasl("PLAIN", username="ann", password="\n"))


def test_a_changed_password_file_is_read_again(tmp_path: Path) -> None:
    """SIGHUP loads the settings once more: the same environment gives the new password."""
    file = tmp_path / "password"
    environ = sasl("PLAIN", username="ann", password_file=str(file))
    file.write_text("old")
    admin(environ)
    file.write_text("new")
    assert SecretStr("new") == admin(environ).sasl_password


def test_oauthbearer_has_client_credentials() -> None:
    """Endpoint, id and secret have the Java client's names; the scope may be missing."""
    environ = sasl("OAUTHBEARER") | {
        URL: "https://idp/token",
        f"{CLIENT}_ID": "me",
        f"{CLIENT}_SECRET": "hunter2",
    }
    found = admin(environ)
    expected = ("https://idp/token", "me", SecretStr("hunter2"), None)
    assert expected == (
        found.sasl_oauthbearer_token_endpoint_url,
        found.sasl_oauthbearer_client_credentials_client_id,
        found.sasl_oauthbearer_client_credentials_client_secret,
        found.sasl_oauthbearer_scope,
    )
    assert "kafka" == admin(environ | {SCOPE: "kafka"}).sasl_oauthbearer_scope


def test_oauthbearer_has_a_token_or_an_assertion_in_a_file() -> None:
    """A file URL needs nothing else; an assertion takes the place of the secret, and of the id."""
    environ = sasl("OAUTHBEARER", jaas_config=f"{OAUTHBEARER} required;")
    found = admin(environ | {URL: "file:///var/run/my%20token"})
    assert "/var/run/my token" == token_path(found.sasl_oauthbearer_token_endpoint_url or "")
    found = admin(environ | {URL: "https://idp", f"{ADMIN}SASL_OAUTHBEARER_ASSERTION_FILE": "/jwt"})
    assert (Path("/jwt"), None) == (
        found.sasl_oauthbearer_assertion_file,
        found.sasl_oauthbearer_client_credentials_client_id,
    )


def test_kerberos_has_a_keytab_and_a_principal() -> None:
    """The Java client's form works as it is, and a setting takes precedence over it."""
    options = 'useKeyTab=true storeKey=true keyTab="/etc/k.keytab" principal="ann@B" serviceName=k'
    environ = sasl("GSSAPI", jaas_config=f"{KERBEROS} required {options};")
    for more, expected in (
        ({}, (Path("/etc/k.keytab"), "ann@B", "k")),
        ({f"{ADMIN}SASL_KERBEROS_PRINCIPAL": "bob@B"}, (Path("/etc/k.keytab"), "bob@B", "k")),
    ):
        found = admin(environ | more)
        assert expected == (
            found.sasl_kerberos_keytab,
            found.sasl_kerberos_principal,
            found.sasl_kerberos_service_name,
        )


@pytest.mark.parametrize(
    ("server", "region"),
    [
        ("b-1.demo.a1b2c3.c2.kafka.us-east-1.amazonaws.com:9098", "us-east-1"),
        ("boot-x.c1.kafka-serverless.eu-west-1.amazonaws.com:9098", "eu-west-1"),
        ("b-1.demo.a1b2c3.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
    ],
)
def test_the_region_is_in_the_brokers_names(server: str, region: str) -> None:
    """A setting takes precedence, for names of one's own."""
    environ = sasl("AWS_MSK_IAM", jaas_config=f"{IAM} required;")
    environ[f"{ADMIN}BOOTSTRAP_SERVERS"] = server
    assert region == admin(environ).sasl_aws_region
    assert (
        "eu-north-1" == admin(environ | {f"{ADMIN}SASL_AWS_REGION": "eu-north-1"}).sasl_aws_region
    )


def test_oauthbearers_own_settings_win_over_the_jaas_config() -> None:
    """The Java client does so; what they lack is taken from it."""
    jaas = f'{OAUTHBEARER} required clientId="x" clientSecret="hunter2" scope="kafka";'
    environ = sasl("OAUTHBEARER", jaas_config=jaas) | {URL: "http://idp", f"{CLIENT}_ID": "me"}
    found = admin(environ)
    expected = ("me", SecretStr("hunter2"), "kafka")
    assert expected == (
        found.sasl_oauthbearer_client_credentials_client_id,
        found.sasl_oauthbearer_client_credentials_client_secret,
        found.sasl_oauthbearer_scope,
    )


@pytest.mark.parametrize(
    ("key", "message", "environ"),
    [
        (
            "SASL_MECHANISM",
            "SASL_SSL needs one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI and"
            " AWS_MSK_IAM",
            {f"{ADMIN}SECURITY_PROTOCOL": "SASL_SSL"},
        ),
        ("SASL_MECHANISM", "'DIGEST'", sasl("DIGEST", username="a")),
        ("SASL_KERBEROS_KEYTAB", "GSSAPI needs a keytab", sasl("GSSAPI", kerberos_principal="a@B")),
        ("SASL_KERBEROS_PRINCIPAL", "a principal", sasl("GSSAPI", kerberos_keytab="/keytab")),
        (
            "SASL_KERBEROS_KEYTAB",
            "is for GSSAPI, and the mechanism is PLAIN",
            sasl("PLAIN", username="a", password="hunter2", kerberos_keytab="/keytab"),
        ),
        ("SASL_AWS_REGION", "needs the region, which the brokers' names", sasl("AWS_MSK_IAM")),
        (
            "SASL_JAAS_CONFIG",
            "may have no options",
            sasl("AWS_MSK_IAM", jaas_config=f"{IAM} required x=hunter2;", aws_region="eu-west-1"),
        ),
        (
            "SASL_OAUTHBEARER_ASSERTION_FILE",
            f"is set besides {CLIENT}_SECRET: set one of the two",
            sasl("OAUTHBEARER", oauthbearer_assertion_file="/jwt")
            | {URL: "http://x", f"{CLIENT}_ID": "me", f"{CLIENT}_SECRET": "hunter2"},
        ),
        (
            "SASL_OAUTHBEARER_SCOPE",
            f"has no use: {URL} names the token's file",
            sasl("OAUTHBEARER", oauthbearer_scope="hunter2") | {URL: "file:///token"},
        ),
        (
            "SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL",
            "is not file:// and an absolute path",
            sasl("OAUTHBEARER") | {URL: "file://token"},
        ),
        ("SASL_USERNAME", "PLAIN needs a user", sasl("PLAIN", password="hunter2")),
        ("SASL_PASSWORD", "needs a password", sasl("SCRAM-SHA-256", username="ann")),
        (
            "SASL_PASSWORD",
            "is set besides SIDECAR_KAFKA_ADMIN_SASL_PASSWORD_FILE",
            sasl("PLAIN", username="ann", password="hunter2", password_file="/x"),
        ),
        (
            "SASL_USERNAME",
            "is set besides SIDECAR_KAFKA_ADMIN_SASL_JAAS_CONFIG: set one of the two",
            sasl("PLAIN", username="x", jaas_config=f"{PLAIN} required username=a password=b;"),
        ),
        (
            "SASL_JAAS_CONFIG",
            "needs the options username and password",
            sasl("PLAIN", jaas_config=f"{PLAIN} required password=hunter2;"),
        ),
        (
            "SASL_JAAS_CONFIG",
            "semicolon",
            sasl("PLAIN", jaas_config=f"{PLAIN} required password=hunter2"),
        ),
        ("SASL_JAAS_CONFIG", "is empty", sasl("PLAIN", jaas_config="")),
        (
            "SASL_JAAS_CONFIG",
            f"is for another mechanism than SCRAM-SHA-512, which needs {SCRAM}",
            sasl("SCRAM-SHA-512", jaas_config=f"{PLAIN} required password=hunter2;"),
        ),
        (
            "SASL_JAAS_CONFIG",
            f"is for another mechanism than OAUTHBEARER, which needs {OAUTHBEARER}",
            sasl("OAUTHBEARER", jaas_config=f"{PLAIN} required password=hunter2;"),
        ),
        (
            "SASL_OAUTHBEARER_SCOPE",
            "is for OAUTHBEARER, and the mechanism is PLAIN",
            sasl("PLAIN", username="a", password="hunter2", oauthbearer_scope="x"),
        ),
        (
            "SASL_PASSWORD",
            "is for PLAIN and SCRAM, and the mechanism is OAUTHBEARER",
            sasl("OAUTHBEARER", password="hunter2", oauthbearer_token_endpoint_url="http://x")
            | {f"{CLIENT}_ID": "me", f"{CLIENT}_SECRET": "s"},
        ),
        (
            "SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL",
            "needs the address of a token endpoint",
            sasl("OAUTHBEARER") | {f"{CLIENT}_ID": "me", f"{CLIENT}_SECRET": "hunter2"},
        ),
        (
            "SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID",
            "needs a client id",
            sasl("OAUTHBEARER") | {URL: "http://x", f"{CLIENT}_SECRET": "hunter2"},
        ),
        (
            "SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET",
            "needs a client secret",
            sasl("OAUTHBEARER") | {URL: "http://x", f"{CLIENT}_ID": "me"},
        ),
    ],
)
def test_what_doesnt_fit_is_one_problem(key: str, message: str, environ: dict[str, str]) -> None:
    """Each names the setting to change and none of the secrets."""
    line = problem(environ)
    assert f"{ADMIN}{key}" in line.partition(": ")[0]
    assert message in line
    assert "hunter2" not in line


@pytest.mark.parametrize(
    ("protocol", "meant"), [("PLAINTEXT", "SASL_PLAINTEXT"), ("SSL", "SASL_SSL")]
)
def test_credentials_need_a_sasl_protocol(protocol: str, meant: str) -> None:
    """Whoever sets credentials believes that they are used."""
    line = problem({f"{ADMIN}SECURITY_PROTOCOL": protocol, f"{ADMIN}SASL_PASSWORD": "hunter2"})
    expected = (
        f"{ADMIN}SASL_PASSWORD: isn't used, since security.protocol is {protocol}: was {meant}"
    )
    assert line.startswith(expected)


def test_a_malformed_protocol_is_reported_once() -> None:
    """The credentials may fit the protocol that was meant."""
    line = problem({f"{ADMIN}SECURITY_PROTOCOL": "SASL-SSL", f"{ADMIN}SASL_PASSWORD": "hunter2"})
    assert line.startswith(f"{ADMIN}SECURITY_PROTOCOL: 'SASL-SSL'")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_password_file_without_one_is_a_problem(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    """The message names the file, and nothing of its content."""
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    line = problem(sasl("PLAIN", username="ann", password_file=str(file)))
    assert f"{ADMIN}SASL_PASSWORD_FILE: '{file}'" in line
    assert message in line


def test_a_password_files_path_may_be_malformed() -> None:
    """A password file that isn't a path is one problem, not also a missing password."""
    assert "is empty" in problem(sasl("PLAIN", username="ann", password_file=""))


def test_no_file_is_read_for_another_mechanism(tmp_path: Path) -> None:
    """A password file is opened only when the password is used."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # to open it would hang
    line = problem({f"{ADMIN}SASL_PASSWORD_FILE": str(pipe)})
    assert "isn't used" in line
