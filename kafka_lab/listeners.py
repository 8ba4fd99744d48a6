"""Additional listeners of brokers: TLS and SASL, with certificates from files.

Every broker has the listener PLAIN for other brokers and for the demo's helpers. Its principal is
ANONYMOUS, which is always a super user. A ``Listener`` describes another listener.

Example: ``Listener("SECURE", "SASL_SSL", mechanism="SCRAM-SHA-512", users={"alice": "secret"},
tls=Tls(certificate=chain_pem, key=key_pem))``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Tls:
    """The server's side of TLS, as PEM files.

    Attributes:
        certificate: the chain, which begins with the broker's own certificate. It must name
            127.0.0.1, or the name that clients use.
        key: the private key, unencrypted PKCS #8 ("BEGIN PRIVATE KEY").
        client_ca: the authority of the clients' certificates, which are then required (mTLS).
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """An additional listener of every broker.

    Attributes:
        name: an upper-case name, such as "SECURE".
        protocol: Kafka's security.protocol.
        mechanism: the SASL mechanism, for the SASL protocols.
        users: passwords by user. SCRAM users are created when the cluster is up, which needs Kafka
            3.5 or newer. PLAIN users are in the broker's configuration.
        tls: the certificates, for the SSL protocols.
    """

    name: str
    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: Tls | None = None


def listener_properties(listener: Listener) -> dict[str, str]:
    """Return the broker's properties for a listener, except its address."""
    prefix = f"listener.name.{listener.name.lower()}."
    properties: dict[str, str] = {}
    if listener.tls is not None:
        tls = listener.tls
        properties[prefix + "ssl.keystore.type"] = "PEM"
        properties[prefix + "ssl.keystore.certificate.chain"] = tls.certificate.read_text()
        properties[prefix + "ssl.keystore.key"] = tls.key.read_text()
        if tls.client_ca is not None:
            properties[prefix + "ssl.truststore.type"] = "PEM"
            properties[prefix + "ssl.truststore.certificates"] = tls.client_ca.read_text()
            properties[prefix + "ssl.client.auth"] = "required"
    if listener.mechanism is not None:
        properties[prefix + "sasl.enabled.mechanisms"] = listener.mechanism
        module, options = "scram.ScramLoginModule", ""
        if listener.mechanism == "PLAIN":
            module = "plain.PlainLoginModule"
            options = "".join(f' user_{u}="{_quoted(p)}"' for u, p in listener.users.items())
        properties[f"{prefix}{listener.mechanism.lower()}.sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module} required{options};"
        )
    return properties


def is_scram(listener: Listener) -> bool:
    """Return whether a listener has SCRAM users, which are in the cluster's metadata."""
    return listener.mechanism is not None and listener.mechanism.startswith("SCRAM")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
