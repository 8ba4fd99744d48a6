"""Explains in one line why a stream of topics ended by itself, and what to do.

Example: "...SaslAuthenticationException: Authentication failed during authentication due to invalid
credentials..." of ``b1:9093`` becomes ``b1:9093: the login was refused: ...``. The texts of Kafka
and Spark are not repeated, because they may contain settings.

Source: org.apache.kafka.common.errors, and Spark's KafkaOffsetReaderAdmin, which wraps them.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sidecar.errors import SidecarError
from usage_pipeline.streaming.kafka_source import TopicOptions
from usage_pipeline.streaming.stream import StreamError

_CAUSES: Final = (
    (
        r"UnknownTopicOrPartitionException",
        "{bootstrap_servers}: there is no topic {topics}, or this user may not see it: check"
        " --topic, and grant the user the ACL Describe",
    ),
    (
        r"(?:Topic|Cluster|Group)AuthorizationException",
        "{bootstrap_servers}: this user may not read {topics}: kafka-acls.sh --bootstrap-server"
        " HOST:PORT --add --allow-principal User:NAME --operation Read --topic {topics}",
    ),
    (
        r"UnsupportedSaslMechanismException",
        "{bootstrap_servers}: the listener does not have this SASL mechanism: check sasl.mechanism"
        " in --command-config",
    ),
    (
        r"SaslAuthenticationException",
        "{bootstrap_servers}: the login was refused: check the user, the password and"
        " sasl.mechanism in --command-config",
    ),
    (
        r"Failed to load SSL keystore|NoSuchFileException|Invalid PEM",
        "a certificate file can't be read: every machine that runs Spark needs it; check"
        " ssl.truststore.* and ssl.keystore.* in --command-config",
    ),
    (
        r"SslAuthenticationException|SSLHandshakeException",
        "{bootstrap_servers}: TLS failed: the broker's certificate is not trusted or has another"
        " name, or the broker requires a client certificate: check ssl.* in --command-config",
    ),
    (
        r"Failed to (?:create new KafkaAdminClient|construct kafka consumer)",
        "the Kafka client rejects the settings of --command-config: check ssl.* and sasl.*;"
        " sasl.jaas.config has the form"
        ' org.apache.kafka.common.security.scram.ScramLoginModule required username="..."'
        ' password="...";',
    ),
    (
        r"errors\.TimeoutException",
        "{bootstrap_servers}: no broker answers: check --bootstrap-server, and whether its"
        " listener speaks {protocol}",
    ),
)
"""Patterns of failures and their messages, more specific patterns first."""


class TopicsError(SidecarError):
    """The topics' cluster can't be reached, or refuses access."""


@contextmanager
def topic_failures(options: TopicOptions) -> Iterator[None]:
    """Raise a failure with a known cause as an error that explains it; other errors pass through.

    Raises:
        TopicsError: the cluster can't be reached, or refuses access.
    """
    try:
        yield
    except StreamError as error:
        message = _message_of(f"{error}\n{getattr(error.__cause__, '_stackTrace', '')}")
        if message is None:
            raise
        text = message.format(
            bootstrap_servers=options.bootstrap_servers,
            topics=options.topics,
            protocol=options.client.get("security.protocol", "PLAINTEXT"),
        )
        raise TopicsError(text) from error


def _message_of(text: str) -> str | None:
    return next((message for pattern, message in _CAUSES if re.search(pattern, text)), None)
