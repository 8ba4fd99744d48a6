"""The values that the daemon uses."""

import pytest
from pydantic import SecretStr, ValidationError

from sidecar.settings import HostPort, KafkaAdmin


@pytest.mark.parametrize(
    ("expected", "host"), [("broker-0:9092", "broker-0"), ("[::1]:9092", "::1")]
)
def test_an_address_is_written_as_it_is_read(expected: str, host: str) -> None:
    """IPv6 is in brackets, as in a URL."""
    assert expected == str(HostPort(host, 9092))


def test_secrets_are_in_no_repr() -> None:
    """Whatever prints the value prints stars."""
    admin = KafkaAdmin(
        bootstrap_servers=(HostPort("a", 1),),
        sasl_password=SecretStr("hunter2"),
        sasl_oauthbearer_client_credentials_client_secret=SecretStr("hunter2"),
        ssl_keystore_key=SecretStr("hunter2"),
        ssl_key_password=SecretStr("hunter2"),
    )
    assert "hunter2" not in f"{admin!r} {admin} {admin.model_dump()}"


def test_values_cant_be_changed() -> None:
    """New credentials are a new value (SIGHUP), never a changed one."""
    admin = KafkaAdmin(bootstrap_servers=(HostPort("a", 1),))
    with pytest.raises(ValidationError):
        admin.client_id = "x"  # type: ignore[misc]  # that mypy refuses it too is the point
