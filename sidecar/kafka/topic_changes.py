"""Creating topics, adding partitions and deleting topics, within a mutation quota (KIP-599).

What is over the quota is sent again after the wait that the controller states, until the time-out,
as Kafka's admin client does by default; as there that can be switched off. Unlike it, this sends
many topics in several requests, waits after every throttled answer, since the connection is muted
anyway, and ends at once when the wait would be longer than the time left.

Example: at 1 partition a second with 11 windows of 1 s, of 30 topics of one partition the first 12
are created at once, since a bucket of 11 takes what brings it below 0, and then 1 each second.

Sources: KIP-599, sections "Changes to Kafka Admin Client" and "Kafka Topic Command".
"""

from collections.abc import Sequence
from functools import partial

from sidecar.kafka.client.controller import Controller
from sidecar.kafka.mutation_batches import CallPolicy, Mutation, MutationBatcher, ResultCallback, T
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
"""As the admin client's default.api.timeout.ms."""


async def create_topics(
    admin: KafkaAdmin,
    topics: Sequence[NewTopic],
    *,
    timeout_s: float = TIMEOUT_S,
    retry_on_quota_violation: bool = True,
    validate_only: bool = False,
    on_result: ResultCallback | None = None,
) -> tuple[TopicResult, ...]:
    """Create topics.

    Args:
        admin: how to reach the brokers.
        topics: each name once.
        timeout_s: for all of it, seconds.
        retry_on_quota_violation: whether what is throttled is sent again until the time-out.
        validate_only: nothing is created; a KRaft controller charges it all the same.
        on_result: gets each topic's result as soon as it is known.

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
    policy = CallPolicy(timeout_s, retry=retry_on_quota_violation)
    return await _run(admin, MutationBatcher(mutation, topics, policy, on_result))


async def create_partitions(
    admin: KafkaAdmin,
    growths: Sequence[Growth],
    *,
    timeout_s: float = TIMEOUT_S,
    retry_on_quota_violation: bool = True,
    validate_only: bool = False,
    on_result: ResultCallback | None = None,
) -> tuple[TopicResult, ...]:
    """Adds partitions to topics; arguments, results and errors as of ``create_topics``."""
    mutation: Mutation[Growth] = Mutation(
        partial(CreatePartitions, validate_only=validate_only),
        lambda answer: [(name, code, text) for name, code, text, *_ in answer.results or ()],
        lambda growth: growth.name,
        # What is added is known to the controller only.
        lambda growth: growth.partitions,
    )
    policy = CallPolicy(timeout_s, retry=retry_on_quota_violation)
    return await _run(admin, MutationBatcher(mutation, growths, policy, on_result))


async def delete_topics(
    admin: KafkaAdmin,
    names: Sequence[str],
    *,
    timeout_s: float = TIMEOUT_S,
    retry_on_quota_violation: bool = True,
    on_result: ResultCallback | None = None,
) -> tuple[TopicResult, ...]:
    """Delete topics; arguments, results and errors as of ``create_topics``."""
    mutation: Mutation[str] = Mutation(
        DeleteTopics,
        lambda answer: [(name, code, text) for name, _, code, text, *_ in answer.responses or ()],
        str,
        lambda _: 1,
    )
    policy = CallPolicy(timeout_s, retry=retry_on_quota_violation)
    return await _run(admin, MutationBatcher(mutation, names, policy, on_result))


async def _run(admin: KafkaAdmin, run: MutationBatcher[T]) -> tuple[TopicResult, ...]:
    async with Controller(admin) as controller:
        return await run.run(controller)
