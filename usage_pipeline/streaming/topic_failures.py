"""Why a stream of topics has ended by itself, in a line that says what to do.

Example: "...SaslAuthenticationException: Authentication failed during authentication due to invalid
credentials..." of ``b1:9093`` is ``b1:9093: the login was refused: ...``. Nothing that Kafka or
Spark said is repeated, since settings may be a part of it.

Source: org.apache.kafka.common.errors, and what Spark's KafkaOffsetReaderAdmin makes of them.
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
        "{bootstrap_servers}: there is no topic {topics}, or this user may not see it: look at"
        " --topic, and give it the ACL Describe",
    ),
    (
        r"(?:Topic|Cluster|Group)AuthorizationException",
        "{bootstrap_servers}: this user may not read {topics}: kafka-acls.sh --bootstrap-server"
        " HOST:PORT --add --allow-principal User:NAME --operation Read --topic {topics}",
    ),
    (
        r"UnsupportedSaslMechanismException",
        "{bootstrap_servers}: the listener does not have this SASL mechanism: look at"
        " sasl.mechanism in --command-config",
    ),
    (
        r"SaslAuthenticationException",
        "{bootstrap_servers}: the login was refused: look at the user, the password and"
        " sasl.mechanism in --command-config",
    ),
    (
        r"Failed to load SSL keystore|NoSuchFileException|Invalid PEM",
        "a file of certificates can't be read, which every machine of Spark's has to have: look at"
        " ssl.truststore.* and ssl.keystore.* in --command-config",
    ),
    (
        r"SslAuthenticationException|SSLHandshakeException",
        "{bootstrap_servers}: TLS failed: the broker's certificate is not trusted or is for another"
        " name, or it wants one of ours: look at ssl.* in --command-config",
    ),
    (
        r"Failed to (?:create new KafkaAdminClient|construct kafka consumer)",
        "the client can't be made of --command-config: look at its ssl.* and sasl.*;"
        " sasl.jaas.config is like"
        ' org.apache.kafka.common.security.scram.ScramLoginModule required username="..."'
        ' password="...";',
    ),
    (
        r"errors\.TimeoutException",
        "{bootstrap_servers}: no broker answers: look at --bootstrap-server, and whether its"
        " listener speaks {protocol}",
    ),
)
"""What a failure's words are a sign of, and its message, the more specific first."""


class TopicsError(SidecarError):
    """The topics' cluster can't be reached, or refuses."""


@contextmanager
def topic_failures(options: TopicOptions) -> Iterator[None]:
    """What the cluster is to blame for becomes a refusal; all else is as it was.

    Raises:
        TopicsError: the cluster can't be reached, or refuses.
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


def _message_of(said: str) -> str | None:
    return next((message for sign, message in _CAUSES if re.search(sign, said)), None)
