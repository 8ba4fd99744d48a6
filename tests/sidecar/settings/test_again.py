"""Which files a running daemon reads again, and which changes need a restart."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from sidecar.errors import SettingsError
from sidecar.settings import Settings, load, need_restart, read_again, secret_files
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
