"""How produce quotas are read and changed: by Kafka's protocol, or by another platform's API.

``QuotaPlatform`` is all that the throttle needs. Platforms without Kafka's AlterClientQuotas, such
as those with an API of their own over HTTP, can be added as another class with these three methods.
``KafkaQuotas`` is for all brokers that answer DescribeClientQuotas and AlterClientQuotas (Kafka
2.8), and keeps originals as ``sidecar.quotas.kept_originals`` describes.

Example: ``await quotas.apply(first, {alice: 8559249.0}, first)`` with ``first`` = ``{alice:
Kept(1e7, 1e7)}`` keeps alice's original in the cluster, and then lowers her quota. If the first
request fails, nothing is lowered. Later steps keep nothing new: ``apply({}, ..., first)``.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from sidecar.client_quotas.plan import Found
from sidecar.errors import SidecarError
from sidecar.kafka.client_quotas import alter_each, describe_client_quotas
from sidecar.kafka.quota_messages import Alteration
from sidecar.quotas.entities import ClientQuotas, Entity, QuotaKey
from sidecar.quotas.kept_originals import (
    Kept,
    originals_in,
    record_of,
    records_of,
    without_records,
)
from sidecar.settings import HostPort, KafkaAdmin
from sidecar.volumes import Failure, FailureKind

_KEY: Final = QuotaKey.PRODUCE.value
_NO_BROKERS: Final = Failure(FailureKind.CONNECT, "no brokers are configured")

_T = TypeVar("_T")

Describe = Callable[[], Awaitable[ClientQuotas | Failure]]
Alter = Callable[[Sequence[Alteration]], Awaitable[list[Failure | None] | Failure]]

Outcomes = dict[Entity, Failure | None]
"""Entity -> why its change failed, or None."""


class QuotaPlatform(Protocol):
    """Reads and changes the produce quotas of a cluster. No method raises an expected error."""

    async def read(self) -> Found | Failure:
        """Return the produce quotas and the originals that the cluster keeps."""

    async def apply(
        self,
        keep: Mapping[Entity, Kept],
        values: Mapping[Entity, float],
        originals: Mapping[Entity, Kept],
    ) -> Outcomes | Failure:
        """Keep originals, and only then set quotas; the outcomes are those of the quotas.

        Args:
            keep: entity -> its original, which the cluster does not keep yet.
            values: entity -> its new quota.
            originals: entity -> its original, for each of ``values``. It is written beside the
                quota: another sidecar may have restored both since they were read.
        """

    async def restore(
        self, originals: Mapping[Entity, Kept], also: Collection[Entity] = ()
    ) -> Outcomes | Failure:
        """Set originals (None removes a quota) and keep them no longer, together if possible.

        Args:
            originals: entity -> its original. One that can't be set is kept.
            also: entities whose quota stays as it is, but whose original is no longer kept.
        """


@dataclass(frozen=True, slots=True)
class KafkaQuotas:
    """The quotas of a cluster of Kafka brokers.

    Attributes:
        describe: returns all client quotas; may raise SidecarError.
        alter: sets and removes quotas, and returns each failure; may raise SidecarError.
        is_whole: whether the changes of a call are made in one moment, as by Kafka's controllers
            (KRaft). Brokers with ZooKeeper make them one after the other, within milliseconds.
    """

    describe: Describe
    alter: Alter
    is_whole: bool = True

    @classmethod
    def of(cls, admin: Callable[[], KafkaAdmin | None]) -> "KafkaQuotas":
        """Reach brokers as ``admin`` says then; None means that no brokers are configured."""
        unanswered = Counter[HostPort]()

        async def describe() -> ClientQuotas | Failure:
            reach = admin()
            return _NO_BROKERS if reach is None else await describe_client_quotas(reach)

        async def alter(alterations: Sequence[Alteration]) -> list[Failure | None] | Failure:
            reach = admin()
            if reach is None:
                return _NO_BROKERS
            return await alter_each(reach, alterations, unanswered=unanswered)

        return cls(describe, alter)

    async def read(self) -> Found | Failure:
        """As in ``QuotaPlatform``."""
        quotas = await _unraised(self.describe())
        if isinstance(quotas, Failure):
            return quotas
        produce = {
            entity: values[_KEY]
            for entity, values in without_records(quotas).items()
            # No client has an empty name, and Kafka refuses to change its quota. Migrations to
            # KRaft left such quotas in place of a default's (KAFKA-16411).
            if _KEY in values and entity.ip is None and "" not in (entity.user, entity.client_id)
        }
        return Found(produce, originals_in(quotas))

    async def apply(
        self,
        keep: Mapping[Entity, Kept],
        values: Mapping[Entity, float],
        originals: Mapping[Entity, Kept],
    ) -> Outcomes | Failure:
        """As in ``QuotaPlatform``."""
        records: dict[Entity, float | None] = {}
        for entity, kept in keep.items():
            record, value = record_of(entity, kept)
            # An earlier record of the other form would say something else.
            records |= dict.fromkeys(records_of(entity))
            records[record] = value
        kept_now = await self._set(records)
        if isinstance(kept_now, Failure):
            return kept_now
        failed = {
            entity: failure
            for entity, kept in keep.items()
            if (failure := kept_now[record_of(entity, kept)[0]]) is not None
        }
        pairs: dict[Entity, float | None] = {}
        for entity, value in values.items():
            if entity not in failed:
                record, original = record_of(entity, originals[entity])
                pairs |= {record: original, entity: value}
        outcomes = await self._set(pairs)
        if isinstance(outcomes, Failure):
            return outcomes
        return {**{entity: outcomes.get(entity) for entity in values}, **failed}

    async def restore(
        self, originals: Mapping[Entity, Kept], also: Collection[Entity] = ()
    ) -> Outcomes | Failure:
        """As in ``QuotaPlatform``.

        One request if it is made whole: if another sidecar's change came between an original and
        the end of its record, nobody would know of that change.
        """
        values = {entity: kept.original for entity, kept in originals.items()}
        first = {} if self.is_whole else await self._set(values)
        if isinstance(first, Failure):
            return first
        changes: dict[Entity, float | None] = {}
        for entity in (*originals, *also):
            if self.is_whole and entity in values:
                changes[entity] = values[entity]
            if first.get(entity) is None:
                changes |= dict.fromkeys(records_of(entity))
        second = await self._set(changes)
        if isinstance(second, Failure):
            return second
        outcomes = first | second
        refused = [entity for entity in originals if outcomes[entity] is not None]
        # The record is the only copy of the original.
        await self._set(dict(record_of(entity, originals[entity]) for entity in refused))
        of_records = {
            entity: failure
            for entity in (*originals, *also)
            for record in records_of(entity)
            if (failure := outcomes.get(record)) is not None
        }
        return {entity: outcomes[entity] for entity in originals} | of_records

    async def _set(self, values: Mapping[Entity, float | None]) -> Outcomes | Failure:
        if not values:
            return {}
        alterations: list[Alteration] = [
            (entity.parts(), {_KEY: value}) for entity, value in values.items()
        ]
        outcomes = await _unraised(self.alter(alterations))
        if isinstance(outcomes, Failure):
            return outcomes
        return dict(zip(values, outcomes, strict=True))


async def _unraised(answer: Awaitable[_T | Failure]) -> _T | Failure:
    try:
        return await answer
    except SidecarError as error:
        # Certificates or credentials can't be read now, because they are being replaced.
        return Failure(FailureKind.AUTHENTICATION, " ".join(str(error).split()))
