"""Which files a running daemon reads again, and which changes need a restart."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from sidecar.errors import SettingsError
from sidecar.settings import (
    KafkaAdmin,
    PemFiles,
    Settings,
    load,
    need_restart,
    read_again,
    secret_files,
    with_former,
)
from tests.sidecar.settings.support import ADMIN, GOOD

LOGIN = {
    f"{ADMIN}SECURITY_PROTOCOL": "SASL_SSL",
    f"{ADMIN}SASL_MECHANISM": "PLAIN",
    f"{ADMIN}SASL_USERNAME": "ann",
}
PASSWORD_FILE = f"{ADMIN}SASL_PASSWORD_FILE"


def loaded(environ: dict[str, str] | None = None, config: Path | None = None) -> Settings:
    """Good settings with these besides."""
    return load(environ={**GOOD, **(environ or {})}, config=config).settings


def test_all_files_with_secrets_are_named_once(tmp_path: Path) -> None:
    """Certificate and key may be in one file; without files there are none."""
    assert () == secret_files(loaded())
    (tmp_path / "password").write_text("hunter2")
    names = {
        "SIDECAR_TOKEN_FILE": "token",
        f"{ADMIN}SSL_TRUSTSTORE_LOCATION": "ca.pem",
        f"{ADMIN}SSL_KEYSTORE_LOCATION": "client.pem",
        f"{ADMIN}SSL_KEYSTORE_KEY_LOCATION": "client.pem",
        PASSWORD_FILE: "password",
    }
    environ = {name: str(tmp_path / file) for name, file in names.items()}
    settings = loaded(LOGIN | environ)
    expected = {tmp_path / file for file in ("token", "ca.pem", "client.pem", "password")}
    assert expected == set(secret_files(settings))
    assert len(expected) == len(secret_files(settings))


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PROPERTIES = "client.quota.callback.static.kafka.admin"


def write_toml(file: Path, password: str, more: str = "") -> None:
    """A TOML file with a password, and other settings."""
    file.write_text(f"{more}\n[kafka_admin]\nsasl_password = '{password}'\n")


def test_a_settings_file_is_followed_if_a_secret_is_in_it(tmp_path: Path) -> None:
    """A password there; not if another place sets it."""
    config = tmp_path / "sidecar.toml"
    write_toml(config, "hunter2")
    assert config in secret_files(loaded(LOGIN, config))
    by_environment = {f"{ADMIN}SASL_PASSWORD": "other"}
    assert config not in secret_files(loaded(LOGIN | by_environment, config))


def test_a_secret_in_a_properties_file_is_read_again(tmp_path: Path) -> None:
    """User and password are of one generation; nothing else of the file is used."""
    file = tmp_path / "server.properties"

    def found(user: str, servers: str) -> Settings:
        file.write_text(
            f"{PROPERTIES}.sasl.jaas.config={SCRAM} username={user} password={user}-secret;\n"
            f"{PROPERTIES}.bootstrap.servers={servers}\n"
        )
        environ = LOGIN | {f"{ADMIN}SASL_MECHANISM": "SCRAM-SHA-512"}
        environ = {name: text for name, text in environ.items() if "USERNAME" not in name}
        good = {name: text for name, text in GOOD.items() if "SERVERS" not in name}
        return load(environ=good | environ, properties=file).settings

    settings = found("ann", "one:9092")
    assert file in secret_files(settings)
    admin = read_again(settings, lambda: found("bob", "two:9092")).kafka_admin
    assert admin is not None
    assert ("bob", SecretStr("bob-secret")) == (admin.sasl_username, admin.sasl_password)
    assert settings.kafka_admin is not None
    assert settings.kafka_admin.bootstrap_servers == admin.bootstrap_servers


def test_a_file_that_a_reference_names_is_read_again(tmp_path: Path) -> None:
    """The properties file stays as it is, and is followed too."""
    file, secret = tmp_path / "server.properties", tmp_path / "password"
    options = f'username=${{env:LOGIN_USER}} password="${{dir:{tmp_path}:password}}";'
    file.write_text(f"{PROPERTIES}.sasl.jaas.config={SCRAM} {options}\n")
    environ = LOGIN | {f"{ADMIN}SASL_MECHANISM": "SCRAM-SHA-512", "LOGIN_USER": "ann"}
    del environ[f"{ADMIN}SASL_USERNAME"]

    def found(password: str) -> Settings:
        secret.write_text(f"{password}\n")
        return load(environ={**GOOD, **environ}, properties=file).settings

    settings = found("old")
    assert {file, secret} <= set(secret_files(settings))
    admin = read_again(settings, lambda: found("new")).kafka_admin
    assert admin is not None
    assert ("ann", SecretStr("new")) == (admin.sasl_username, admin.sasl_password)


def test_a_settings_file_with_another_mechanism_is_refused(tmp_path: Path) -> None:
    """Its secrets do not fit the connections of now."""
    config = tmp_path / "sidecar.toml"
    write_toml(config, "hunter2")
    settings = loaded(LOGIN, config)
    scram = LOGIN | {f"{ADMIN}SASL_MECHANISM": "SCRAM-SHA-256"}
    with pytest.raises(SettingsError, match="SIGHUP"):
        read_again(settings, lambda: loaded(scram, config))


@pytest.mark.parametrize(
    ("more", "is_followed"),
    [
        ({f"{ADMIN}SECURITY_PROTOCOL": "SSL"}, True),
        ({f"{ADMIN}SECURITY_PROTOCOL": "SSL", f"{ADMIN}SSL_TRUSTSTORE_LOCATION": "/ca"}, False),
        ({}, False),
    ],
)
def test_the_machines_ca_certificates_are_followed_if_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], is_followed: bool
) -> None:
    """A private CA may be in a file that the environment names."""
    system = tmp_path / "system.pem"
    system.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(system))
    assert is_followed is (system in secret_files(loaded(more)))


def test_the_password_is_read_again(tmp_path: Path) -> None:
    """Nothing else changes; settings without such a file stay as they are."""
    assert (plain := loaded()) is read_again(plain)
    file = tmp_path / "password"
    file.write_text("old")
    settings = loaded(LOGIN | {PASSWORD_FILE: str(file)})
    file.write_text("new\n")
    found = read_again(settings)
    assert found.kafka_admin is not None
    assert SecretStr("new") == found.kafka_admin.sasl_password
    assert () == need_restart(settings, found)
    file.write_text("old")
    assert settings == read_again(found)


def test_certificates_and_keys_are_read_again(tmp_path: Path) -> None:
    """Their contents are as of then; a file that can't be read has none, and no text shows any."""
    (tmp_path / "ca.pem").write_bytes(b"trusted")
    (tmp_path / "client.pem").write_bytes(b"certified")
    names = {
        f"{ADMIN}SECURITY_PROTOCOL": "SSL",
        f"{ADMIN}SSL_TRUSTSTORE_LOCATION": "ca.pem",
        f"{ADMIN}SSL_KEYSTORE_LOCATION": "client.pem",
        f"{ADMIN}SSL_KEYSTORE_KEY_LOCATION": "missing.pem",
    }
    environ = {name: str(tmp_path / value) for name, value in names.items()}
    found = read_again(loaded(environ | {f"{ADMIN}SECURITY_PROTOCOL": "SSL"}))
    assert found.kafka_admin is not None
    assert PemFiles(b"trusted", b"certified", None) == found.kafka_admin.files
    assert "certified" not in repr(found)


def admin_of(password: str, *, trusts: bytes = b"ca", key: bytes = b"key") -> KafkaAdmin:
    """Connection settings of a generation."""
    return KafkaAdmin(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_password=SecretStr(password),
        files=PemFiles(trusts, key, key),
    )


def test_the_former_credentials_are_known() -> None:
    """Password, certificate and key are the former ones, but only new CAs are trusted."""
    found = with_former(
        admin_of("new", trusts=b"new ca", key=b"new key"), admin_of("old"), is_refused=False
    )
    assert admin_of("old", trusts=b"new ca") == found.former
    assert SecretStr("new") == found.sasl_password
    assert "former" not in repr(found)


def test_credentials_that_were_refused_are_not_the_former_ones() -> None:
    """Those before them are, whatever is trusted now; so are those before a change of CAs alone."""
    second = with_former(admin_of("second"), admin_of("first"), is_refused=False)
    third = with_former(admin_of("third", trusts=b"new"), second, is_refused=True)
    assert admin_of("first", trusts=b"new") == third.former
    again = with_former(admin_of("second", trusts=b"new"), second, is_refused=False)
    assert admin_of("first", trusts=b"new") == again.former


def test_a_change_of_something_else_keeps_the_former_credentials() -> None:
    """The settings that a daemon reads again know former ones already."""
    second = with_former(admin_of("second"), admin_of("first"), is_refused=False)
    files = PemFiles(b"new", b"key", b"key")
    again = with_former(second.model_copy(update={"files": files}), second, is_refused=False)
    assert admin_of("first", trusts=b"new") == again.former


def test_credentials_of_another_mechanism_are_not_the_former_ones() -> None:
    """A broker would not know what to do with them."""
    other = admin_of("old").model_copy(update={"sasl_mechanism": "SCRAM-SHA-512"})
    assert with_former(admin_of("new"), other, is_refused=False).former is None
    assert with_former(admin_of("same"), admin_of("same"), is_refused=False).former is None


@pytest.mark.parametrize(
    ("content", "why"), [(b"", "is empty"), (b"\xff\xfe", "is not UTF-8 text"), (None, "can't be")]
)
def test_a_password_that_can_not_be_read_is_named(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    """The message names setting and file, and has no byte of it."""
    file = tmp_path / "password"
    file.write_text("old")
    settings = loaded(LOGIN | {PASSWORD_FILE: str(file)})
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as raised:
        read_again(settings)
    (problem,) = raised.value.problems
    assert problem.startswith(f"{PASSWORD_FILE}: {str(file)!r} {why}")


def test_a_change_in_a_file_is_named_as_the_file_names_it(tmp_path: Path) -> None:
    """Only files change while a daemon runs, so its key is the one to look for."""
    config = tmp_path / "sidecar.toml"
    config.write_text('mode = "enforce"')
    before = loaded(config=config)
    config.write_text('mode = "observe"\n[kafka_admin]\nclient_id = "another"')
    (name,) = need_restart(before, loaded(config=config))
    assert name == "mode (SIDECAR_MODE)"
