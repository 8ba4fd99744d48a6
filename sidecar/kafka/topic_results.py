"""The result of creating, growing or deleting each topic.

Example: error 89 is THROTTLED, with the remaining wait. Error 36, TOPIC_ALREADY_EXISTS, is FAILED.
Without an answer the result is UNKNOWN, because the controller may have made the change.
"""

from dataclasses import dataclass
from enum import StrEnum

from sidecar.kafka.client.failures import error_name, one_line

REQUEST_TIMED_OUT = 7
TOPIC_AUTHORIZATION_FAILED = 29
NOT_CONTROLLER = 41
THROTTLING_QUOTA_EXCEEDED = 89
THROTTLED_TEXT = f"error {THROTTLING_QUOTA_EXCEEDED} (THROTTLING_QUOTA_EXCEEDED)"
"""aiokafka has no name for this error."""


_RIGHTS = (
    "creating needs Create on the topic or the cluster, adding partitions needs Alter and deleting "
    "needs Delete on the topic: kafka-acls.sh --bootstrap-server <host:port> --add "
    "--allow-principal User:<name> --operation <operation> --topic <topic>; with AWS IAM, allow "
    "kafka-cluster:CreateTopic, AlterTopic or DeleteTopic in its policy instead"
)


class Outcome(StrEnum):
    """The outcome for one topic."""

    DONE = "done"
    """The change was made, or was validated if only that was requested."""
    THROTTLED = "throttled"
    """The last answer rejected the change because of the quota."""
    FAILED = "failed"
    """The controller rejected the change for another reason."""
    UNKNOWN = "unknown"
    """The change was sent, but no answer shows whether it was made."""
    NOT_SENT = "not sent"
    """The time-out ended first, an earlier request was throttled, or no broker answered."""
    INTERRUPTED = "interrupted"
    """The program was ended. The change may have been made, or may not have been sent."""


@dataclass(frozen=True, slots=True)
class TopicResult:
    """The result for one topic.

    Attributes:
        topic: the topic's name.
        outcome: the outcome.
        message: the reason, for a person; "" for DONE.
        throttle_time_ms: how long to wait after the call before sending it again; 0 if it was not
            throttled.
    """

    topic: str
    outcome: Outcome
    message: str = ""
    throttle_time_ms: int = 0


def topic_result(topic: str, error_code: int, error_message: str | None) -> TopicResult:
    """The result for a topic that was not throttled, from the controller's answer."""
    if not error_code:
        return TopicResult(topic, Outcome.DONE)
    if error_code == TOPIC_AUTHORIZATION_FAILED:
        # Kafka's own message is "Authorization failed."
        error_message = _RIGHTS
    more = f": {error_message}" if error_message else ""
    message = one_line(f"{error_name(error_code)}{more}")
    if error_code == REQUEST_TIMED_OUT:
        return TopicResult(topic, Outcome.UNKNOWN, message)
    return TopicResult(topic, Outcome.FAILED, message)
