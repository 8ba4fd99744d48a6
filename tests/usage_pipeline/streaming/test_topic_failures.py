"""Why a stream of topics has ended; integration tests use the messages of a real cluster."""

import pytest

from sidecar.errors import SidecarError
from usage_pipeline.streaming.kafka_source import TopicOptions
from usage_pipeline.streaming.stream import StreamError
from usage_pipeline.streaming.topic_failures import TopicsError, topic_failures

ERRORS = "org.apache.kafka.common.errors."
OPTIONS = TopicOptions("b1:9093", "logs", client={"security.protocol": "SASL_SSL"})


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (f"{ERRORS}SaslAuthenticationException: hidden", "b1:9093: the login was refused"),
        (f"{ERRORS}TimeoutException: Timed out", "b1:9093: no broker answers: .* speaks SASL_SSL$"),
        (
            f"{ERRORS}TopicAuthorizationException: hidden",
            "b1:9093: .* --operation Read --topic logs",
        ),
        (f"{ERRORS}UnknownTopicOrPartitionException: x", "b1:9093: there is no topic logs"),
        (
            "Failed to create new KafkaAdminClient\nCaused by: Failed to load SSL keystore /x of",
            "a certificate file can't be read",
        ),
        (
            "Failed to create new KafkaAdminClient\nCaused by: x",
            "the form org.apache.kafka.common.s",
        ),
    ],
)
def test_what_the_cluster_is_to_blame_for(raised: str, message: str) -> None:
    """One line says what to do, and nothing of the original text."""
    with pytest.raises(TopicsError, match=message) as refused, topic_failures(OPTIONS):
        raise StreamError(raised)
    assert "hidden" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "error", [StreamError("a disk is full"), SidecarError("SslAuthenticationException")]
)
def test_what_is_no_clusters_doing_is_as_it_was(error: SidecarError) -> None:
    """Other failures pass unchanged."""
    with pytest.raises(SidecarError) as raised, topic_failures(OPTIONS):
        raise error
    assert error is raised.value
