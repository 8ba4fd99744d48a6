"""Client quotas, SCRAM users and ACLs of a simulated cluster, by kio."""

import os
import signal
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import f64, i8, i32

from sidecar.quotas.entities import Entity
from tests.support.fake_broker import FakeBroker, FakeCluster, FakeRequest, encode

DESCRIBE_ACLS = 29
DESCRIBE_CLIENT_QUOTAS = 48
ALTER_CLIENT_QUOTAS = 49
DESCRIBE_SCRAM = 50

NO_TIME = timedelta(0)
_ALLOW = i8(3)


@dataclass
class FakeQuotas:
    """What the brokers of a cluster know of quotas and users.

    Attributes:
        quotas: entity -> its quotas; it changes as it is asked to.
        scram: users with a SCRAM credential.
        acls: principals that an ACL allows something; None: there is no authorizer.
        refused: entities whose quotas are not set, also not when it is only validated.
        refused_when_set: the same, but validating them goes well.
        drops: entities at which the connection is dropped: they are set, those after them are not.
        interrupts: entities at which the process has a SIGINT when they are set.
        offline_after_drop: from then on nobody may read quotas.
        describe_error: what DescribeClientQuotas is answered with.
        requests: how many entities each AlterClientQuotas had, and whether it only validated.
    """

    quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    scram: set[str] = field(default_factory=set)
    acls: set[str] | None = field(default_factory=set)
    refused: set[Entity] = field(default_factory=set)
    refused_when_set: set[Entity] = field(default_factory=set)
    drops: set[Entity] = field(default_factory=set)
    interrupts: set[Entity] = field(default_factory=set)
    offline_after_drop: bool = False
    describe_error: ErrorCode = ErrorCode.none
    requests: list[tuple[int, bool]] = field(default_factory=list)

    def of(self, cluster: FakeCluster) -> FakeCluster:
        """Let a cluster's brokers answer with these."""
        cluster.answer(DESCRIBE_CLIENT_QUOTAS, 1, self._describe)
        cluster.answer(ALTER_CLIENT_QUOTAS, 1, self._alter)
        cluster.answer(DESCRIBE_SCRAM, 0, self._scram)
        return cluster.answer(DESCRIBE_ACLS, 3, self._acls)

    def _describe(self, _broker: FakeBroker, _: FakeRequest) -> bytes:
        kio = load_payload_module(DESCRIBE_CLIENT_QUOTAS, 1, EntityType.response)
        entries = tuple(
            kio.EntryData(
                entity=_parts(kio, entity.parts()),
                values=tuple(
                    kio.ValueData(key=key, value=f64(value)) for key, value in values.items()
                ),
            )
            for entity, values in self.quotas.items()
        )
        return encode(
            kio.DescribeClientQuotasResponse(
                throttle_time=NO_TIME,
                error_code=self.describe_error,
                error_message=None,
                entries=entries,
            )
        )

    def _alter(self, broker: FakeBroker, request: FakeRequest) -> bytes:
        kio = load_payload_module(ALTER_CLIENT_QUOTAS, 1, EntityType.response)
        asked = request.decoded
        self.requests.append((len(asked.entries), asked.validate_only))
        entries = []
        for entry in asked.entries:
            parts = {each.entity_type: each.entity_name for each in entry.entity}
            entity = Entity.of(parts)
            code = self._code(entity, asked.validate_only)
            if code is ErrorCode.none and not asked.validate_only:
                self._set(entity, entry.ops)
                if entity in self.interrupts:
                    os.kill(os.getpid(), signal.SIGINT)
                if entity in self.drops:
                    broker.drop()
                    if self.offline_after_drop:
                        self.describe_error = ErrorCode.cluster_authorization_failed
                    break
            entries.append(
                kio.EntryData(
                    error_code=code,
                    error_message=None if code is ErrorCode.none else "it is odd",
                    entity=_parts(kio, parts),
                )
            )
        return encode(kio.AlterClientQuotasResponse(throttle_time=NO_TIME, entries=tuple(entries)))

    def _code(self, entity: Entity, validate_only: bool) -> ErrorCode:
        if entity in self.refused or (entity in self.refused_when_set and not validate_only):
            return ErrorCode.invalid_request
        return ErrorCode.none

    def _set(self, entity: Entity, ops: Any) -> None:
        values = self.quotas.setdefault(entity, {})
        for op in ops:
            if op.remove:
                values.pop(op.key, None)
            else:
                values[op.key] = op.value
        if not values:
            del self.quotas[entity]

    def _scram(self, _broker: FakeBroker, _: FakeRequest) -> bytes:
        kio = load_payload_module(DESCRIBE_SCRAM, 0, EntityType.response)
        return encode(
            kio.DescribeUserScramCredentialsResponse(
                throttle_time=NO_TIME,
                error_code=ErrorCode.none,
                error_message=None,
                results=tuple(
                    kio.DescribeUserScramCredentialsResult(
                        user=user,
                        error_code=ErrorCode.none,
                        error_message=None,
                        credential_infos=(
                            kio.CredentialInfo(mechanism=i8(2), iterations=i32(4096)),
                        ),
                    )
                    for user in self.scram
                ),
            )
        )

    def _acls(self, _broker: FakeBroker, _: FakeRequest) -> bytes:
        kio = load_payload_module(DESCRIBE_ACLS, 3, EntityType.response)
        rules = tuple(
            kio.AclDescription(
                principal=principal, host="*", operation=i8(3), permission_type=_ALLOW
            )
            for principal in self.acls or ()
        )
        topic = kio.DescribeAclsResource(
            resource_type=i8(2), resource_name="orders", pattern_type=i8(3), acls=rules
        )
        return encode(
            kio.DescribeAclsResponse(
                throttle_time=NO_TIME,
                error_code=ErrorCode.security_disabled if self.acls is None else ErrorCode.none,
                error_message=None,
                resources=(topic,) if rules else (),
            )
        )


def _parts(kio: Any, parts: dict[str, str | None]) -> tuple[Any, ...]:
    return tuple(kio.EntityData(entity_type=kind, entity_name=name) for kind, name in parts.items())
