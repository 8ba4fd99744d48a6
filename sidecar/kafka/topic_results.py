"""What became of each topic that was to be created, grown or deleted.

Example: error 89 is THROTTLED, with the wait that is left; error 36, TOPIC_ALREADY_EXISTS, is
FAILED; an answer that did not come is UNKNOWN, since the controller may have done it.
"""

from dataclasses import dataclass
from enum import StrEnum

from sidecar.kafka.client.failures import error_name, one_line

REQUEST_TIMED_OUT = 7
TOPIC_AUTHORIZATION_FAILED = 29
NOT_CONTROLLER = 41
THROTTLING_QUOTA_EXCEEDED = 89
THROTTLED_TEXT = f"error {THROTTLING_QUOTA_EXCEEDED} (THROTTLING_QUOTA_EXCEEDED)"
"""aiokafka has no name for it."""


_RIGHTS = (
    "to create it needs Create on the topic or the cluster, to grow Alter and to delete Delete on "
    "the topic: kafka-acls.sh --bootstrap-server <host:port> --add --allow-principal User:<name> "
    "--operation <operation> --topic <topic>"
)


class Outcome(StrEnum):
    """How it ended for one topic."""

    DONE = "done"
    """Created, grown or deleted; or validated, when only that was requested."""
    THROTTLED = "throttled"
    """The last answer rejected it for the quota."""
    FAILED = "failed"
    """The controller refused it for another reason."""
    UNKNOWN = "unknown"
    """It was sent, and no answer shows whether it was done."""
    NOT_SENT = "not sent"
    """It was not sent: the time-out or a throttled request came first, or no broker answered."""
    INTERRUPTED = "interrupted"
    """Somebody ended the program before: it may have been done, or not have been sent."""


@dataclass(frozen=True, slots=True)
class TopicResult:
    """What became of one topic.

    Attributes:
        topic: its name.
        outcome: how it ended.
        message: why, for a person; "" when it is done.
        throttle_time_ms: how long to wait before it is sent again, counted from the end of
            the call; 0 where nothing was throttled.
    """

    topic: str
    outcome: Outcome
    message: str = ""
    throttle_time_ms: int = 0


def topic_result(topic: str, error_code: int, error_message: str | None) -> TopicResult:
    """The result of a controller's answer for a topic that was not throttled."""
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
