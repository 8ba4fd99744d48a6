r"""The client settings for reading topics, from a properties file for Kafka's tools.

Spark reads topics with Kafka's Java client, so it passes the file's keys to that client. Properties
that only this program accepts are translated to Java's: PEM files without a type, ``sasl.username``
with ``sasl.password`` or ``sasl.password.file``, and a key in a separate file. Certificates are
passed as text, so that Spark's other machines need no file.

Example: ``ssl.truststore.location=ca.pem`` is ``ssl.truststore.type=PEM`` and
``ssl.truststore.certificates=-----BEGIN CERTIFICATE-----\n...``.

Source: KIP-651 (PEM), org.apache.kafka.common.security.JaasContext.
"""

from pathlib import Path
from typing import Final

from sidecar.errors import SettingsError
from sidecar.formats import jaas

_MODULES: Final = {
    "PLAIN": jaas.PLAIN,
    "SCRAM-SHA-256": jaas.SCRAM,
    "SCRAM-SHA-512": jaas.SCRAM,
}
_PEM: Final = "-----BEGIN "


def client_properties(path: Path) -> dict[str, str]:
    """Return the settings of the client.

    Raises:
        SettingsError: the file, or a file that it names, can't be used. The message has no secret.
    """
    import javaproperties  # noqa: PLC0415 - only with topics

    try:
        with path.open(encoding="utf-8") as file:
            properties = dict(javaproperties.load(file))
    except (OSError, ValueError) as error:
        # From None, because the unreadable part may be the secret.
        reason = error.strerror if isinstance(error, OSError) else "it is not a properties file"
        raise SettingsError((f"{path} can't be read: {reason}",)) from None
    _login(properties)
    _pem(properties, "ssl.truststore", "certificates")
    _pem(properties, "ssl.keystore", "certificate.chain")
    return properties


def _login(properties: dict[str, str]) -> None:
    user, password = properties.pop("sasl.username", None), properties.pop("sasl.password", None)
    file = properties.pop("sasl.password.file", None)
    if user is None or "sasl.jaas.config" in properties:
        return
    if file is not None:
        password = _text("sasl.password.file", file).removesuffix("\n").removesuffix("\r")
    module = _MODULES.get(properties.get("sasl.mechanism", ""))
    if password is None or module is None:
        raise SettingsError(
            (
                "sasl.username needs sasl.password or sasl.password.file, and as sasl.mechanism one"
                f" of {', '.join(_MODULES)}",
            )
        )
    properties["sasl.jaas.config"] = (
        f"{module} required username={_quoted(user)} password={_quoted(password)};"
    )


def _pem(properties: dict[str, str], store: str, target: str) -> None:
    """Return the files of a store as text, if they are PEM."""
    location, kind = properties.get(f"{store}.location"), properties.get(f"{store}.type", "PEM")
    if location is None or kind.upper() != "PEM":
        return
    key = properties.pop(f"{store}.key.location", None)
    text = _text(f"{store}.location", location)
    if _PEM not in text:
        # A keystore in Java's default format, which needs no type.
        return
    del properties[f"{store}.location"]
    properties |= {f"{store}.type": "PEM", f"{store}.{target}": text}
    if store == "ssl.keystore":
        properties[f"{store}.key"] = text if key is None else _text(f"{store}.key.location", key)


def _text(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SettingsError((f"{name}: {path} can't be read: {error.strerror}",)) from error


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
