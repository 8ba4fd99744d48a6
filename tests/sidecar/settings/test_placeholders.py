"""References to config providers."""

from pathlib import Path
from typing import Final

import pytest

from sidecar.settings.forms import Entry
from sidecar.settings.placeholders import Providers

KAFKA: Final = "org.apache.kafka.common.config.provider."


def resolved(value: str, pairs: dict[str, str] | None = None) -> Entry:
    """An entry with its references replaced; the environment has HUNTER."""
    providers = Providers((pairs or {}).items(), {"HUNTER": "hunter2"})
    return providers.resolved(Entry(value, "key", "properties"))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A mounted Secret, and a properties file."""
    (tmp_path / "password").write_text("hunter2\n")
    (tmp_path / "login.properties").write_text("user = ann\npassword = ${env:HUNTER}\n")
    return tmp_path


def test_each_provider_gives_what_it_names(secret: Path) -> None:
    """The file, the folder and the variable, with the files to follow."""
    login = secret / "login.properties"
    found = resolved(f"a=${{file:{login}:user}} b=${{dir:{secret}:password}} c=${{env:HUNTER}}")
    assert ("a=ann b=hunter2 c=hunter2", (login, secret / "password")) == (
        found.value,
        found.referenced,
    )


def test_a_file_with_keys_is_utf_8(tmp_path: Path) -> None:
    """Kafka's FileConfigProvider reads it so, unlike other properties files."""
    file = tmp_path / "login.properties"
    file.write_bytes("password=Schl\u00fcssel-\u20ac1\n".encode())
    assert "Schl\u00fcssel-\u20ac1" == resolved(f"${{file:{file}:password}}").value
    file.write_bytes(b"password=Schl\xfcssel\n")
    with pytest.raises(ValueError, match=r"login\.properties is not UTF-8 text$"):
        resolved(f"${{file:{file}:password}}")


def test_what_is_found_is_not_searched_again(secret: Path) -> None:
    """Nor is it in Kafka."""
    found = resolved(f"${{file:{secret}/login.properties:password}}")
    assert "${env:HUNTER}" == found.value


def test_a_provider_has_the_name_that_the_file_gives_it(secret: Path) -> None:
    """Strimzi's names need no line; any other needs one, with a class that is known."""
    found = resolved("${x:HUNTER}", {"config.providers.x.class": f"{KAFKA}EnvVarConfigProvider"})
    assert "hunter2" == found.value
    assert "hunter2" == resolved(f"${{strimzidir:{secret}:password}}").value
    with pytest.raises(ValueError, match="unknown config provider; these are known: file, dir, "):
        resolved("${env:HUNTER}", {"config.providers.env.class": "org.example.Vault"})


def test_text_without_references_stays_as_it_is() -> None:
    """A dollar and braces alone are no reference."""
    entry = Entry("$a {b} ${c}", "key", "properties")
    assert entry == Providers((), {}).resolved(entry)


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        (
            "${secrets:kafka/login:password}",
            "mount login into its container, and write ${dir:/mnt/login:password}",
        ),
        (
            "${strimzisecrets:kafka/my-cluster-cluster-ca-cert:*.crt}",
            "and write /mnt/my-cluster-cluster-ca-cert to ssl.truststore.location",
        ),
        ("${configmaps:kafka/login:user}", "write ${dir:/mnt/login:user}"),
        ("${env:MISSING}", "the variable MISSING is not set"),
        ("${file:login.properties:user}", "must name an absolute path and a key"),
        ("${file:SECRET/login.properties:users}", "login.properties has no key users"),
        ("${file:SECRET/gone:user}", "gone can't be read: No such file or directory"),
        ("${dir:SECRET:gone}", "gone can't be read: No such file or directory"),
        ("${vault:kv/login:user}", "has an unknown config provider"),
    ],
)
def test_a_reference_that_leads_nowhere_is_named(
    secret: Path, reference: str, problem: str
) -> None:
    """The sentence says what to do, and has nothing of a file."""
    with pytest.raises(ValueError, match=r"\$") as raised:
        resolved(reference.replace("SECRET", str(secret)))
    assert problem in str(raised.value)
    assert "hunter2" not in str(raised.value)
