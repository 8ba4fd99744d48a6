"""Admissions of controller mutations by the cluster's own quotas.

The quotas are read from a broker, and read again every 30 s as long as requests come: without any
request none are read. Nobody is admitted by quotas that are unknown, or older than the validity
duration because newer reads failed.

Example: the first request in a while waits for the quotas, some 20 ms; with no broker that answers
it fails after 5 s at most.

A quota that is changed is in force on the controller at once, and here 30 s later at most.

Source: KIP-599.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from sidecar.errors import SidecarError
from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.mutations.admissions import AdmissionRequest, Judged, MutationAdmissions, Muted
from sidecar.settings import KafkaAdmin
from sidecar.volumes import Failure, FailureKind

_log = logging.getLogger(__name__)

READ_EVERY_S: Final = 30.0
"""How late a quota that was changed is in force here; an answer of a broker costs it some ms."""
RETRY_AFTER_S: Final = 1.0
"""The same after a read that failed."""
FORGOTTEN_AFTER_S: Final = 600.0
"""So long after the last request the quotas are no longer read, and those known are forgotten."""
TIMEOUT_S: Final = 5.0
"""How long a request waits for quotas when none are known."""

ReadQuotas = Callable[[KafkaAdmin, float], Awaitable[ClientQuotas | Failure]]
"""How to reach the brokers and for how long, seconds -> all quotas, or why not."""

_NOT_READ: Final = Failure(FailureKind.TIMEOUT, "the quotas were not read in time")


class ControllerMutations:
    """Judges requests. Initially no quota is known and none is read."""

    def __init__(
        self,
        admissions: MutationAdmissions,
        admin: KafkaAdmin,
        *,
        read: ReadQuotas,
        clock: Callable[[], float],
        validity_s: float,
    ) -> None:
        """Nothing runs yet.

        Args:
            admissions: judges.
            admin: how to reach the brokers.
            read: reads the quotas.
            clock: steady seconds.
            validity_s: how long quotas may be used while newer reads fail, seconds.
        """
        self._admissions = admissions
        self._admin = admin
        self._read = read
        self._clock = clock
        self._validity_s = validity_s
        # Read anew well before what is known may no longer be used.
        self._every_s = min(READ_EVERY_S, validity_s / 2)
        self._wanted = asyncio.Event()
        self._requested_at = clock()
        self._read_at: float | None = None
        self._failure: Failure | None = None
        self._news = asyncio.Condition()

    def reload(self, admin: KafkaAdmin) -> None:
        """Use new addresses and credentials from the next read on."""
        self._admin = admin

    async def admit(self, request: AdmissionRequest) -> Judged | Muted | Failure:
        """What becomes of a request.

        Returns:
            A failure: the quotas are not known, so nobody is admitted.
        """
        self._requested_at = self._clock()
        self._wanted.set()
        if not self._known():
            try:
                async with asyncio.timeout(TIMEOUT_S), self._news:
                    await self._news.wait()
            except TimeoutError:
                return self._failure or _NOT_READ
            if not self._known():
                return self._failure or _NOT_READ
        return self._admissions.admit(request, int(self._clock() * 1000))

    async def run(self) -> None:
        """Keeps the quotas up to date while requests come; ends only when cancelled."""
        while True:
            await self._wanted.wait()
            read = await self._read_once()
            async with self._news:
                self._news.notify_all()
            await asyncio.sleep(self._every_s if read else RETRY_AFTER_S)
            if self._clock() > self._requested_at + FORGOTTEN_AFTER_S:
                self._wanted.clear()
                # From now on they age unseen: the next request waits for new ones.
                self._read_at = None

    def _known(self) -> bool:
        return self._read_at is not None and self._clock() <= self._read_at + self._validity_s

    async def _read_once(self) -> bool:
        try:
            answer = await self._read(self._admin, TIMEOUT_S)
        except SidecarError as error:
            # Certificates or credentials that can't be read just now.
            answer = Failure(FailureKind.AUTHENTICATION, str(error))
        if isinstance(answer, Failure):
            if self._failure is None:
                _log.warning("controller mutation quotas can't be read: %s", answer.message)
            self._failure = answer
            return False
        if self._failure is not None:
            _log.info("controller mutation quotas are read again")
        self._failure = None
        self._read_at = self._clock()
        self._admissions.set_quotas(answer)
        return True
