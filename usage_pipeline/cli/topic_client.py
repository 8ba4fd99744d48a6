r"""The settings of the client that reads topics, from a properties file as Kafka's tools take it.

Spark reads topics with Kafka's Java client, so the file's keys are handed on. What the other
commands of this program take besides, and Java doesn't, is translated to Java's properties: PEM
files whose type is not set, ``sasl.username`` with ``sasl.password`` or ``sasl.password.file``, a
key in a file of its own. PEM is sent as text, so that Spark's other machines need no such file.

Example: ``ssl.truststore.location=ca.pem`` is ``ssl.truststore.type=PEM`` and
``ssl.truststore.certificates=-----BEGIN CERTIFICATE-----\n...``.

Source: KIP-651 (PEM), org.apache.kafka.common.security.JaasContext.
"""

from pathlib import Path
from typing import Final

from sidecar.errors import SettingsError

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PEM: Final = "-----BEGIN "


def client_properties(path: Path) -> dict[str, str]:
    """The client's settings.

    Raises:
        SettingsError: the file, or one that it names, can't be used; no secret is shown.
    """
    import javaproperties  # noqa: PLC0415 - only with topics

    try:
        with path.open(encoding="utf-8") as file:
            properties = dict(javaproperties.load(file))
    except (OSError, ValueError) as error:
        # From None: what can't be read may be the secret.
        reason = error.strerror if isinstance(error, OSError) else "it is no properties file"
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
                "sasl.username needs sasl.password or sasl.password.file, and a sasl.mechanism of"
                f" {', '.join(_MODULES)}",
            )
        )
    properties["sasl.jaas.config"] = (
        f"{module} required username={_quoted(user)} password={_quoted(password)};"
    )


def _pem(properties: dict[str, str], store: str, target: str) -> None:
    """A store's files as text, when they are PEM."""
    location, store_type = (
        properties.get(f"{store}.location"),
        properties.get(f"{store}.type", "PEM"),
    )
    if location is None or store_type.upper() != "PEM":
        return
    key = properties.pop(f"{store}.key.location", None)
    text = _text(f"{store}.location", location)
    if _PEM not in text:
        # Java's own kind, whose type is not set either.
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
