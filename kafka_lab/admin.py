"""Topics, users, ACLs and configurations of the demo's cluster, through confluent-kafka.

Every call has a deadline and fails with a ``ClusterError`` of one line. A broker places a partition
in the log dir with the fewest partitions. So M partitions, or a multiple of M, fill a broker's M
volumes equally. If broker 2 has two empty volumes, ``assignment=[[2], [2]]`` places a partition on
each of them.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kafka_lab.waiting import POLL_S
from sidecar.errors import ClusterError

_SCRAM_ITERATIONS = 4096
# Brokers are started and ended deliberately, so librdkafka's messages about it are noise.
_SILENT = logging.getLogger(f"{__name__}.librdkafka")
_SILENT.propagate = False
_SILENT.addHandler(logging.NullHandler())


class Admin:
    """An admin client of the cluster's plain listener."""

    def __init__(self, bootstrap: str, timeout_s: float = 15.0) -> None:
        """Make a client, which connects at the first call."""
        self._timeout_s = timeout_s
        self._client = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "socket.timeout.ms": int(timeout_s * 1000),
                # A short backoff, because a broker may not be up yet.
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
            },
            logger=_SILENT,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the client's threads."""
        await asyncio.to_thread(self._client.__exit__, None, None, None)

    async def active_brokers(self) -> frozenset[int]:
        """Return the ids of the brokers that are not fenced, according to one broker."""
        return frozenset((await self._metadata()).brokers)

    async def wait_active(self, holds: Callable[[frozenset[int]], bool]) -> None:
        """Wait until a condition holds for the active brokers' ids; the caller sets a deadline."""
        while True:
            # After an error, try again: the broker does not listen yet, or no longer.
            with suppress(ClusterError):
                if holds(await self.active_brokers()):
                    return
            await asyncio.sleep(POLL_S)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication: int = 1,
        assignment: Sequence[Sequence[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic.

        Args:
            name: the topic's name.
            partitions: the number of partitions, if there is no assignment.
            replication: the number of replicas of each partition, if there is no assignment.
            assignment: for each partition, the broker ids of its replicas, the leader first.
            config: the topic's configuration.
        """
        if assignment is None:
            topic = NewTopic(name, partitions, replication, config=dict(config or {}))
        else:
            replicas = [list(ids) for ids in assignment]
            topic = NewTopic(
                name, len(replicas), replica_assignment=replicas, config=dict(config or {})
            )
        futures = self._client.create_topics([topic], request_timeout=self._timeout_s)
        await self._done(f"topic {name} can't be created", futures[name])

    async def delete_topic(self, *names: str) -> None:
        """Delete topics; their segments are removed after log.segment.delete.delay.ms."""
        if names:
            futures = self._client.delete_topics(list(names), request_timeout=self._timeout_s)
            for name in names:
                await self._done(f"topic {name} can't be deleted", futures[name])

    async def topics(self) -> frozenset[str]:
        """Return the names of all topics, including internal ones."""
        return frozenset((await self._metadata()).topics)

    async def under_replicated(self) -> frozenset[str]:
        """Return the topics with a replica that is not in sync, according to one broker."""
        return frozenset(
            name
            for name, topic in (await self._metadata()).topics.items()
            if any(len(each.isrs) < len(each.replicas) for each in topic.partitions.values())
        )

    async def _metadata(self) -> ClusterMetadata:
        try:
            return await asyncio.to_thread(self._client.list_topics, timeout=self._timeout_s)
        except KafkaException as error:
            raise ClusterError(f"the brokers and topics can't be listed: {error}") from error

    async def set_topic_config(self, name: str, config: Mapping[str, str]) -> None:
        """Set some of a topic's configuration, such as retention.bytes."""
        await self._set_config(ResourceType.TOPIC, name, config)

    async def set_broker_config(self, broker_id: int, config: Mapping[str, str]) -> None:
        """Set some of a running broker's dynamic configuration."""
        await self._set_config(ResourceType.BROKER, str(broker_id), config)

    async def create_scram_user(self, user: str, password: str, mechanism: str) -> None:
        """Create a SCRAM user or change the password; needs Kafka 3.5 or newer."""
        kind = ScramMechanism[mechanism.replace("-", "_")]
        change = UserScramCredentialUpsertion(
            user, ScramCredentialInfo(kind, _SCRAM_ITERATIONS), password.encode()
        )
        futures = self._client.alter_user_scram_credentials(
            [change], request_timeout=self._timeout_s
        )
        await self._done(f"user {user} can't be created", futures[user])

    async def allow(self, user: str, operation: str, resource: str, name: str) -> None:
        """Create an ACL for a user, such as ("alice", "DESCRIBE", "BROKER", "kafka-cluster").

        librdkafka calls the resource type CLUSTER "BROKER".
        """
        await self._create_acl(AclPermissionType.ALLOW, user, operation, resource, name)

    async def deny(self, user: str, operation: str, resource: str, name: str) -> None:
        """Create an ACL against a user, with the arguments of ``allow``."""
        await self._create_acl(AclPermissionType.DENY, user, operation, resource, name)

    async def delete_acls(self, user: str, operation: str, resource: str, name: str) -> None:
        """Delete the ACLs that ``allow`` and ``deny`` created with the same arguments."""
        parts = _acl(AclPermissionType.ANY, user, operation, resource, name)
        each = AclBindingFilter(*parts)
        futures = self._client.delete_acls([each], request_timeout=self._timeout_s)
        await self._done(f"{user}'s {operation} can't be deleted", futures[each])

    async def _create_acl(
        self, permission: AclPermissionType, user: str, operation: str, resource: str, name: str
    ) -> None:
        binding = AclBinding(*_acl(permission, user, operation, resource, name))
        futures = self._client.create_acls([binding], request_timeout=self._timeout_s)
        what = f"{operation} can't be set to {permission.name} for {user}"
        await self._done(what, futures[binding])

    async def _set_config(self, kind: ResourceType, name: str, config: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        futures = self._client.incremental_alter_configs(
            [resource], request_timeout=self._timeout_s
        )
        await self._done(f"the configuration of {name} can't be changed", futures[resource])

    async def _done(self, what: str, future: "Future[Any]") -> None:
        try:
            # librdkafka has the same deadline; this one applies if librdkafka misses it.
            async with asyncio.timeout(self._timeout_s + 5.0):
                await asyncio.wrap_future(future)
        except KafkaException as error:
            raise ClusterError(f"{what}: {error.args[0].str()}") from error
        except TimeoutError as error:
            raise ClusterError(f"{what}: no answer in {self._timeout_s:.0f} s") from error


def _acl(
    permission: AclPermissionType, user: str, operation: str, resource: str, name: str
) -> tuple[Any, ...]:
    """Return the arguments of a binding or a filter."""
    principal, kind = f"User:{user}", ResourcePatternType.LITERAL
    return ResourceType[resource], name, kind, principal, "*", AclOperation[operation], permission
