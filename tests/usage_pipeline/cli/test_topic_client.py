"""The settings of the client that reads topics."""

from pathlib import Path

import pytest
import trustme

from sidecar.errors import SettingsError
from usage_pipeline.cli.topic_client import client_properties

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def client_settings(folder: Path, *lines: str) -> dict[str, str]:
    """The client's settings from a file with these lines."""
    file = folder / "client.properties"
    file.write_text("\n".join(lines), encoding="utf-8")
    return client_properties(file)


def test_a_file_of_kafkas_tools_is_handed_on(tmp_path: Path) -> None:
    """Java's own kinds of stores are passed on, with or without their type."""
    (tmp_path / "t.jks").write_bytes(b"\xfe\xed\xfe\xed\xff")
    expected = {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": f'{SCRAM} required username="a" password="hidden";',
        "ssl.truststore.location": f"{tmp_path}/t.jks",
        "ssl.keystore.location": "/only/on/the/executors.p12",
        "ssl.keystore.type": "PKCS12",
    }
    lines = [f"{name} = {value}" for name, value in expected.items()]
    assert expected == client_settings(tmp_path, "# ours", *lines)


def test_pem_files_go_as_text(tmp_path: Path) -> None:
    """They have trusted certificates, and ours with its key beside it or in a file of its own."""
    ca = trustme.CA()
    mine = ca.issue_cert("me")
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    mine.cert_chain_pems[0].write_to_path(tmp_path / "me.pem")
    mine.private_key_pem.write_to_path(tmp_path / "key.pem")
    mine.private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    text = {name: (tmp_path / f"{name}.pem").read_text() for name in ("ca", "me", "key", "both")}
    stores = (f"ssl.truststore.location={tmp_path}/ca.pem", "ssl.truststore.type=PEM")
    own = (f"{tmp_path}/me.pem", f"ssl.keystore.key.location={tmp_path}/key.pem")
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": text["ca"]}
    assert trusted | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": text["me"],
        "ssl.keystore.key": text["key"],
    } == client_settings(tmp_path, *stores, f"ssl.keystore.location={own[0]}", own[1])
    both = client_settings(tmp_path, stores[0], f"ssl.keystore.location={tmp_path}/both.pem")
    assert trusted["ssl.truststore.certificates"] == both["ssl.truststore.certificates"]
    assert (text["both"], text["both"]) == (
        both["ssl.keystore.certificate.chain"],
        both["ssl.keystore.key"],
    )


def test_a_user_with_a_password_is_a_login_module(tmp_path: Path) -> None:
    r"""It is set as the other commands take it, whatever is in the password; a "\" is one."""
    password = tmp_path / "password"
    password.write_text('hid"den\\\n')
    expected = f'{SCRAM} required username="ann" password="hid\\"den\\\\";'
    user = ("sasl.mechanism=SCRAM-SHA-512", "sasl.username=ann")
    for secret in (f"sasl.password.file={password}", 'sasl.password=hid"den\\\\'):
        found = client_settings(tmp_path, *user, secret)
        assert {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": expected} == found


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ("sasl.username=a", "sasl.password=hidden"),
            "as sasl.mechanism one of PLAIN, SCRAM-SHA-256",
        ),
        (("sasl.username=a", "sasl.mechanism=PLAIN"), "needs sasl.password or sasl.password.file"),
        (
            ("sasl.username=a", "sasl.mechanism=PLAIN", "sasl.password.file=/no"),
            "sasl.password.file: /no can't be read: No such file",
        ),
        (("ssl.truststore.location=/no/ca",), "ssl.truststore.location: /no/ca can't be read"),
        (("sasl.password=hidden", r"x=\u00"), "client.properties can't be read"),
    ],
)
def test_what_cant_be_used_is_refused(tmp_path: Path, lines: tuple[str, ...], said: str) -> None:
    """It is refused before Spark starts, and without a secret."""
    with pytest.raises(SettingsError) as refused:
        client_settings(tmp_path, *lines)
    assert said in str(refused.value)
    assert "hidden" not in str(refused.value)
