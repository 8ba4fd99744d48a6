"""Admits controller mutations by the cluster's own quotas.

The sidecar reads the quotas from a broker every 30 s, but only while requests come. It admits no
request if the quotas are unknown, or if newer reads have failed for the validity duration.

Example: the first request after a pause waits for the quotas, about 20 ms. If no broker answers, it
fails after at most 5 s.

A changed quota applies at once on the controller, and at most 30 s later here.

Source: KIP-599.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.mutations.admissions import AdmissionRequest, Judged, MutationAdmissions, Muted
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

_log = logging.getLogger(__name__)

READ_EVERY_S: Final = 30.0
"""The interval of reads, and so the delay of a changed quota. A read costs a broker some ms."""
RETRY_AFTER_S: Final = 1.0
"""The interval after a failed read."""
FORGOTTEN_AFTER_S: Final = 600.0
"""How long after the last request the sidecar stops reading, and forgets the quotas."""
TIMEOUT_S: Final = 5.0
"""How long a request waits for quotas if none are known."""

ReadQuotas = Callable[[KafkaAdmin, float], Awaitable[ClientQuotas | Failure]]
"""(how to reach the brokers, deadline in seconds) -> all quotas, or a failure."""

_NOT_READ: Final = Failure(FailureKind.TIMEOUT, "the quotas were not read in time")


@dataclass(slots=True)
class ControllerMutations:
    """Judges requests. At the start no quota is known and none is read.

    Attributes:
        admissions: the token buckets.
        admin: how to reach the brokers.
        read: reads the quotas.
        clock: returns steady seconds.
        validity_s: how long quotas apply while newer reads fail, in seconds.
    """

    admissions: MutationAdmissions
    admin: KafkaAdmin
    read: ReadQuotas
    clock: Callable[[], float]
    validity_s: float
    _every_s: float = field(init=False)
    _wanted: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _requested_at: float = field(init=False)
    _read_at: float | None = field(default=None, init=False)
    _failure: Failure | None = field(default=None, init=False)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)

    def __post_init__(self) -> None:
        # Read again well before the known quotas expire.
        self._every_s = min(READ_EVERY_S, self.validity_s / 2)
        self._requested_at = self.clock()

    def reload(self, admin: KafkaAdmin) -> None:
        """Use new addresses and credentials from the next read on."""
        self.admin = admin

    async def admit(self, request: AdmissionRequest) -> Judged | Muted | Failure:
        """Judge a request.

        Returns:
            The result, or a failure if the quotas are not known.
        """
        self._requested_at = self.clock()
        self._wanted.set()
        if not self._known():
            try:
                async with asyncio.timeout(TIMEOUT_S), self._news:
                    await self._news.wait()
            except TimeoutError:
                return self._failure or _NOT_READ
            if not self._known():
                return self._failure or _NOT_READ
        return self.admissions.admit(request, int(self.clock() * 1000))

    async def run(self) -> None:
        """Keep the quotas up to date while requests come, until cancelled."""
        while True:
            await self._wanted.wait()
            read = await self._read_once()
            async with self._news:
                self._news.notify_all()
            await asyncio.sleep(self._every_s if read else RETRY_AFTER_S)
            if self.clock() > self._requested_at + FORGOTTEN_AFTER_S:
                self._wanted.clear()
                # The quotas are not read from now on, so the next request waits for new ones.
                self._read_at = None

    def _known(self) -> bool:
        return self._read_at is not None and self.clock() <= self._read_at + self.validity_s

    async def _read_once(self) -> bool:
        answer = await self.read(self.admin, TIMEOUT_S)
        if isinstance(answer, Failure):
            if self._failure is None:
                _log.warning("controller mutation quotas can't be read: %s", answer.message)
            self._failure = answer
            return False
        if self._failure is not None:
            _log.info("controller mutation quotas can be read again")
        self._failure = None
        self._read_at = self.clock()
        self.admissions.set_quotas(answer)
        return True
