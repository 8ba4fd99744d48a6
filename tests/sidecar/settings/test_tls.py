"""TLS: PEM files, PEM text, and Java's key stores."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from sidecar.settings import HostPort, KafkaAdmin
from tests.sidecar.settings.support import ADMIN, admin, loaded, problem, problems

SSL = f"{ADMIN}SSL_"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"


def ssl(**settings: str) -> dict[str, str]:
    """An environment with the protocol SSL and these ssl.* settings."""
    return {f"{ADMIN}SECURITY_PROTOCOL": "SSL"} | {
        f"{SSL}{name.upper()}": value for name, value in settings.items()
    }


def test_without_material_the_system_is_trusted() -> None:
    """No file or text is needed, and the host's name is checked."""
    expected = KafkaAdmin(bootstrap_servers=(HostPort("broker-0", 9092),), security_protocol="SSL")
    assert expected == admin(ssl())


@pytest.mark.parametrize("typed", [{}, {"truststore_type": "PEM", "keystore_type": "pem"}])
def test_material_is_in_files(typed: dict[str, str]) -> None:
    """One file may have our certificate and its key, as in Java."""
    found = admin(
        ssl(
            truststore_location="/ca.crt",
            keystore_location="/us.pem",
            key_password="hunter2",
            **typed,
        )
    )
    us = Path("/us.pem")
    expected = (Path("/ca.crt"), us, us, SecretStr("hunter2"))
    assert expected == (
        found.ssl_truststore_location,
        found.ssl_keystore_location,
        found.key_file,
        found.ssl_key_password,
    )


def test_the_key_may_have_its_own_file() -> None:
    """cert-manager and Strimzi write certificate and key apart."""
    found = admin(ssl(keystore_location="/tls.crt", keystore_key_location="/tls.key"))
    assert (Path("/tls.crt"), Path("/tls.key")) == (
        found.ssl_keystore_location,
        found.ssl_keystore_key_location,
    )


def test_material_is_text() -> None:
    """The settings have PEM text themselves, and its lines are restored."""
    squeezed = CERTIFICATE.replace("\n", " ")
    found = admin(
        ssl(
            truststore_certificates=squeezed,
            keystore_certificate_chain=squeezed,
            keystore_key=KEY.replace("\n", " "),
        )
    )
    expected = (CERTIFICATE, CERTIFICATE, SecretStr(KEY))
    assert expected == (
        found.ssl_truststore_certificates,
        found.ssl_keystore_certificate_chain,
        found.ssl_keystore_key,
    )


@pytest.mark.parametrize(("algorithm", "verified"), [("https", True), ("HTTPS", True), ("", False)])
def test_the_name_is_checked_unless_turned_off(algorithm: str, *, verified: bool) -> None:
    """Empty turns the check of the host's name off, as in the Java client."""
    assert verified is admin(ssl(endpoint_identification_algorithm=algorithm)).verifies_hostname


@pytest.mark.parametrize("form", [{}, {"truststore_type": "PKCS12", "keystore_type": "jks"}])
def test_stores_of_javas_have_passwords(form: dict[str, str]) -> None:
    """Their type may be missing: the content tells it, when it is read."""
    found = admin(
        ssl(
            truststore_location="/trust.p12",
            truststore_password="hunter2",
            keystore_location="/us.jks",
            keystore_password="hunter3",
            **form,
        )
    )
    assert (SecretStr("hunter2"), SecretStr("hunter3")) == (
        found.ssl_truststore_password,
        found.ssl_keystore_password,
    )


def test_a_type_wins_over_the_files_name() -> None:
    """A PEM file may be called anything."""
    found = admin(ssl(truststore_location="/odd.jks", truststore_type="PEM"))
    assert Path("/odd.jks") == found.ssl_truststore_location


@pytest.mark.parametrize(
    ("key", "message", "settings"),
    [
        (
            "TRUSTSTORE_CERTIFICATES",
            f"is set besides {SSL}TRUSTSTORE_LOCATION",
            {"truststore_certificates": CERTIFICATE, "truststore_location": "/ca"},
        ),
        ("TRUSTSTORE_CERTIFICATES", "not a path", {"truststore_certificates": "/etc/ca.crt"}),
        (
            "TRUSTSTORE_PASSWORD",
            "a PEM truststore has no password",
            {
                "truststore_location": "/ca",
                "truststore_type": "PEM",
                "truststore_password": "hunter2",
            },
        ),
        (
            "KEYSTORE_PASSWORD",
            "a PEM keystore has no password: a key's is ssl.key.password",
            {"keystore_location": "/us", "keystore_type": "PEM", "keystore_password": "hunter2"},
        ),
        (
            "KEYSTORE_CERTIFICATE_CHAIN",
            f"needs its key in {SSL}KEYSTORE_KEY",
            {"keystore_certificate_chain": CERTIFICATE},
        ),
        (
            "KEYSTORE_KEY",
            f"needs its certificates in {SSL}KEYSTORE_CERTIFICATE_CHAIN",
            {"keystore_key": KEY},
        ),
        (
            "KEYSTORE_KEY_LOCATION",
            f"needs its certificates in {SSL}KEYSTORE_LOCATION",
            {"keystore_key_location": "/tls.key"},
        ),
        (
            "KEYSTORE_KEY",
            "PEM text",
            {"keystore_key": "hunter2", "keystore_certificate_chain": CERTIFICATE},
        ),
        (
            "ENDPOINT_IDENTIFICATION_ALGORITHM",
            "'none' is neither https nor empty",
            {"endpoint_identification_algorithm": "none"},
        ),
        ("KEYSTORE_TYPE", "'BKS'", {"keystore_type": "BKS"}),
        ("TRUSTSTORE_LOCATION", "is needed for a JKS truststore", {"truststore_type": "JKS"}),
    ],
)
def test_what_doesnt_fit_is_one_problem(key: str, message: str, settings: dict[str, str]) -> None:
    """The Java client has these rules; each names the setting to change and no secret."""
    line = problem(ssl(**settings))
    assert line.startswith(f"{SSL}{key}: ")
    assert message in line
    assert "hunter2" not in line


def test_text_and_file_are_reported_for_each_part() -> None:
    """A chain and a key as text besides a file are two problems."""
    lines = problems(
        {f"{ADMIN}BOOTSTRAP_SERVERS": "a:1", "SIDECAR_STORAGE_CHECK_INTERVAL": "PT0S"}
        | ssl(keystore_certificate_chain=CERTIFICATE, keystore_key=KEY, keystore_location="/us")
    )
    expected = [f"{SSL}KEYSTORE_CERTIFICATE_CHAIN", f"{SSL}KEYSTORE_KEY"]
    assert expected == [line.partition(":")[0] for line in lines]


def test_material_without_tls_is_noted() -> None:
    """The Java client ignores it as well, so a shared file may have it."""
    (notice,) = loaded({f"{SSL}TRUSTSTORE_LOCATION": "/ca"}).notices
    assert f"{SSL}TRUSTSTORE_LOCATION: no effect, since security.protocol is PLAINTEXT" == notice


@pytest.mark.parametrize("environ", [{}, ssl(truststore_location="/ca")])
def test_nothing_is_noted_without_reason(environ: dict[str, str]) -> None:
    """No material, or a protocol that uses it, gives no notice."""
    assert () == loaded(environ).notices
