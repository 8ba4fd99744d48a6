"""Sets the client quotas of a quota source in Kafka, where brokers multiply them by the factor.

Once a minute the source is called and its quotas are compared with Kafka's. The sidecar sets those
that differ, and removes a quota whose value is None. It changes no other quota. So a failure leaves
Kafka's quotas as they are, and an operator's change of one of these quotas lasts a minute.

In observe mode, or while the sidecar is disabled, nothing is written. With observers, only these
write.

Example: a source returns bob's ``{"producer_byte_rate": 1e6}``. Bob has 2 MB/s in Kafka, and gets
1 MB/s. If the source then returns ``[]``, bob keeps 1 MB/s.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NoReturn

from sidecar.control.board import Board
from sidecar.control.known_cluster import ask_known_cluster
from sidecar.daemon.sources import Quotas, Source
from sidecar.kafka.client_quotas import alter_client_quotas, describe_client_quotas
from sidecar.kafka.quota_messages import Alteration
from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.producer_ids.throttle_signature import without_signed
from sidecar.settings import KafkaAdmin
from sidecar.throttle.decision import Source as FactorOrigin
from sidecar.volumes import Failure

_log = logging.getLogger(__name__)

_EVERY_S: Final = 60.0
_DEADLINE_S: Final = 10.0
_WRITE_NOTHING: Final = (FactorOrigin.SHADOW, FactorOrigin.DISABLED)


@dataclass(slots=True)
class QuotaWriter:
    """Compares the quotas of a source with Kafka's.

    Attributes:
        source: the quota source.
        board: counts failures.
        admin: returns how to reach the brokers now.
        is_wanted: whether this sidecar has to write.
    """

    source: Source[Quotas]
    board: Board
    admin: Callable[[], KafkaAdmin | None]
    is_wanted: Callable[[], bool]
    _failure: Failure | None = field(default=None, init=False)

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        while True:
            if self.is_wanted() and self.board.snapshot.decision.source not in _WRITE_NOTHING:
                self._note(await self.settle())
            await asyncio.sleep(_EVERY_S)

    async def settle(self) -> Failure | None:
        """Call the source and set its quotas once."""
        wanted = await self.source.ask(_DEADLINE_S)
        if isinstance(wanted, Failure):
            return wanted
        return await ask_known_cluster(self.admin(), self.board, _set, wanted)

    def _note(self, failure: Failure | None) -> None:
        before, self._failure = self._failure, failure
        if failure is not None:
            self.board.tally.failures[failure.kind] += 1
            if before is None or before.message != failure.message:
                _log.warning("%s: its quotas are not set: %s", self.source.name, failure.message)
        elif before is not None:
            _log.info("%s: its quotas are set again", self.source.name)


async def _set(admin: KafkaAdmin, wanted: Quotas) -> Failure | None:
    current = await describe_client_quotas(admin, _DEADLINE_S)
    if isinstance(current, Failure):
        return current
    alterations = changes(current, wanted)
    if not alterations:
        return None
    failure = await alter_client_quotas(admin, alterations, _DEADLINE_S)
    if failure is None:
        _log.info("set the quotas of %d entities in Kafka", len(alterations))
    return failure


def changes(current: ClientQuotas, wanted: Quotas) -> list[Alteration]:
    """What to set and to remove in Kafka."""
    alterations: list[Alteration] = []
    for entity, values in wanted.items():
        # What a sidecar set for a throttle ends with it, and counts as no quota until then.
        now = without_signed({entity: current.get(entity, {})}).get(entity, {})
        differ = {key: value for key, value in values.items() if now.get(key) != value}
        if differ:
            alterations.append((entity.parts(), differ))
    return alterations
