"""Creates topics, adds partitions and deletes topics, within a mutation quota (KIP-599).

If the quota rejects a topic, it is sent again after the wait that the controller states, until the
time-out. Kafka's admin client does the same by default, and here as there it can be switched off.
There are three differences. Many topics are sent in several requests. After each throttled answer
the call waits, because the connection is muted anyway. If the wait would be longer than the time
left, the call ends at once.

Example: the quota is 1 partition per second with 11 windows of 1 s, and 30 topics have one
partition each. The first 12 are created at once, because a bucket of 11 accepts the topic that
makes it negative. Then one is created each second.

Sources: KIP-599, sections "Changes to Kafka Admin Client" and "Kafka Topic Command".
"""

from collections.abc import Sequence
from functools import partial

from sidecar.kafka.client.controller import Controller
from sidecar.kafka.mutation_batches import Mutation, MutationBatcher, ResultCallback, T
from sidecar.kafka.topic_messages import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    Growth,
    NewTopic,
)
from sidecar.kafka.topic_results import TopicResult
from sidecar.settings import KafkaAdmin

TIMEOUT_S = 60.0
"""Like the admin client's default.api.timeout.ms."""


async def create_topics(
    admin: KafkaAdmin,
    topics: Sequence[NewTopic],
    *,
    timeout_s: float = TIMEOUT_S,
    retry_on_quota_violation: bool = True,
    validate_only: bool = False,
    on_result: ResultCallback | None = None,
) -> tuple[TopicResult, ...]:
    """Creates topics.

    Args:
        admin: how to reach the brokers.
        topics: the topics, each name once.
        timeout_s: the time for all requests and waits, seconds.
        retry_on_quota_violation: whether throttled topics are sent again until the time-out.
        validate_only: whether the controller only validates; on KRaft it charges this anyway.
        on_result: called with each topic's result as soon as it is known.

    Returns:
        A result for each topic, in the order of the topics.

    Raises:
        SettingsError: certificates or credentials can't be read.
        ValueError: a topic is named twice.
    """
    mutation: Mutation[NewTopic] = Mutation(
        partial(CreateTopics, validate_only=validate_only),
        lambda answer: [(name, code, text) for name, _, code, text, *_ in answer.topics or ()],
        lambda topic: topic.name,
        lambda topic: topic.partitions,
    )
    retry = retry_on_quota_violation
    return await _run(admin, MutationBatcher(mutation, topics, timeout_s, on_result, retry=retry))


async def create_partitions(
    admin: KafkaAdmin,
    growths: Sequence[Growth],
    *,
    timeout_s: float = TIMEOUT_S,
    retry_on_quota_violation: bool = True,
    validate_only: bool = False,
    on_result: ResultCallback | None = None,
) -> tuple[TopicResult, ...]:
    """Adds partitions to topics; arguments, results and errors as in ``create_topics``."""
    mutation: Mutation[Growth] = Mutation(
        partial(CreatePartitions, validate_only=validate_only),
        lambda answer: [(name, code, text) for name, code, text, *_ in answer.results or ()],
        lambda growth: growth.name,
        # Only the controller knows how many are added, so the new total fills the batch.
        lambda growth: growth.partitions,
    )
    retry = retry_on_quota_violation
    return await _run(admin, MutationBatcher(mutation, growths, timeout_s, on_result, retry=retry))


async def delete_topics(
    admin: KafkaAdmin,
    names: Sequence[str],
    *,
    timeout_s: float = TIMEOUT_S,
    retry_on_quota_violation: bool = True,
    on_result: ResultCallback | None = None,
) -> tuple[TopicResult, ...]:
    """Deletes topics; arguments, results and errors as in ``create_topics``."""
    mutation: Mutation[str] = Mutation(
        DeleteTopics,
        lambda answer: [(name, code, text) for name, _, code, text, *_ in answer.responses or ()],
        str,
        lambda _: 1,
    )
    retry = retry_on_quota_violation
    return await _run(admin, MutationBatcher(mutation, names, timeout_s, on_result, retry=retry))


async def _run(admin: KafkaAdmin, run: MutationBatcher[T]) -> tuple[TopicResult, ...]:
    async with Controller(admin) as controller:
        return await run.run(controller)
