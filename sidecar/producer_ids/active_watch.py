"""Scans again and again which producer ids write, so that these count and no others (KIP-936).

Leaders are asked which producers are active on their partitions; an id that wrote since the last
scan counts for its owner, as soon as the owner is known, and is reported to the other sidecars.
What can't be read counts for nobody: that is logged once for each kind of failure, and once when it
is over. A scan that took long is followed by a pause nine times as long, half a minute at most: a
tenth of the time is spent in brokers' answers. An address that fails is left alone for up to 10 s.

Where only some sidecars ask all brokers (``SIDECAR_OBSERVERS``) those scan, and report to the
others, unless each scans its own broker's partitions.

Initially nothing was scanned; the first scan counts nobody.

Example: bob's producer gets id 7 and writes a second later: he is charged at the next scan, two
seconds later at most. His producers that are opened and never write charge nobody.

Source: KIP-936, "New Quota Types": the rate at which produce requests come with new ids.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final, Protocol

from sidecar.control.poller import always
from sidecar.kafka.active_producers import OnStates, ScanResult
from sidecar.kafka.leaders import Partition
from sidecar.kafka.producer_messages import ProducerStates
from sidecar.quotas.producer_ids.active_ids import ActiveIds, WrittenSince
from sidecar.volumes import Failure, FailureKind

_log = logging.getLogger(__name__)

TIMEOUT_S: Final = 30.0
"""Of one scan."""
LONGEST_PAUSE_S: Final = 30.0
"""After one, unless the interval is longer."""

_PAUSE_PER_SCAN: Final = 9


class ProducerSource(Protocol):
    """Reads which producers are active; see ``sidecar.kafka.active_producers``."""

    @property
    def partitions(self) -> Mapping[int, list[Partition]]:
        """Those that are scanned."""

    async def scan(self, on_states: OnStates, timeout_s: float) -> ScanResult | Failure:
        """Scans once."""


class ActiveIdWatch:
    """Counts ids that write.

    Attributes:
        ids: owners, and ids that wait for theirs.
        last_scan: the last one's result; None before the first, and while nobody can be asked.
        failure: why nobody could be asked; None when somebody could.
        active: how many ids wrote between the last two scans.
        is_scanning: whether this sidecar scans; False: others do so for it.
    """

    def __init__(
        self,
        source: ProducerSource,
        ids: ActiveIds,
        count: Callable[[str, int], None],
        report: Callable[[str | None, int], None],
        clock: Callable[[], float],
        *,
        interval_s: float,
        is_wanted: Callable[[], bool] = always,
    ) -> None:
        """Nothing is scanned yet.

        Args:
            source: asks the leaders.
            ids: owners; none are known yet.
            count: is called with each user and id that counts.
            report: is called with the owner, if known here, and each id that wrote, for the other
                sidecars.
            clock: steady seconds.
            interval_s: between two scans at least, > 0.
            is_wanted: whether this sidecar is to scan now.
        """
        self.ids = ids
        self.last_scan: ScanResult | None = None
        self.failure: Failure | None = None
        self.active = 0
        self.is_scanning = True
        self._source = source
        self._count = count
        self._report = report
        self._clock = clock
        self._interval_s = interval_s
        self._is_wanted = is_wanted
        self._resumes = False
        self._since = WrittenSince()
        self._partitions: Mapping[int, list[Partition]] = {}
        self._wrote: set[int] = set()
        self._failing: frozenset[FailureKind] = frozenset()
        self._skipped = 0

    def allocated(self, user: str, producer_id: int) -> None:
        """An id is a user's, says a log."""
        attribution = self.ids.allocated(user, producer_id)
        if attribution is not None:
            self._count(user, producer_id)

    def wrote(self, producer_id: int) -> None:
        """An id wrote, says another sidecar."""
        attribution = self.ids.wrote(producer_id, self._now_ms())
        if attribution is not None and attribution.user is not None:
            self._count(attribution.user, producer_id)

    async def run(self) -> None:
        """Scans until cancelled."""
        while True:
            begin = self._clock()
            self.is_scanning = self._is_wanted()
            if self.is_scanning:
                await self.scan()
            else:
                self._forget()
            self.ids.tick(self._now_ms())
            rest_s = min(_PAUSE_PER_SCAN * (self._clock() - begin), LONGEST_PAUSE_S)
            await asyncio.sleep(max(self._interval_s, rest_s))

    async def scan(self) -> None:
        """Scans once."""
        self._wrote = set()
        last_scan = await self._source.scan(self._take, TIMEOUT_S)
        self._resumes = self._resumes and isinstance(last_scan, Failure)
        self.active = len(self._wrote)
        self.failure = last_scan if isinstance(last_scan, Failure) else None
        self.last_scan = None if isinstance(last_scan, Failure) else last_scan
        self._log_failures(last_scan)
        if self._source.partitions is not self._partitions:
            self._partitions = self._source.partitions
            self._since.retain(chain.from_iterable(self._partitions.values()))

    def _forget(self) -> None:
        # What wrote meanwhile has counted by others' reports: the next scan is a first one.
        self.last_scan, self.failure, self.active = None, None, 0
        self._since = WrittenSince()
        self._resumes = True

    def _take(self, partition: Partition, states: ProducerStates, *, is_new: bool) -> None:
        now_ms = self._now_ms()
        is_new = is_new and not self._resumes
        for producer_id in self._since.scan(partition, states, is_new=is_new):
            self._wrote.add(producer_id)
            attribution = self.ids.wrote(producer_id, now_ms)
            if attribution is None:
                continue
            self._report(attribution.user, producer_id)
            if attribution.user is not None:
                self._count(attribution.user, producer_id)

    def _log_failures(self, last_scan: ScanResult | Failure) -> None:
        if isinstance(last_scan, Failure):
            failures, where, skipped = [last_scan], "", 0
        else:
            failures, skipped = list(last_scan.failures.values()), last_scan.skipped
            where = f" of {len(failures)} partitions"
        by_kind = {failure.kind: failure for failure in failures}
        for kind in by_kind.keys() - self._failing:
            _log.warning(
                "the active producers%s can't be seen, and what these write counts for nobody: %s",
                where,
                by_kind[kind].message,
            )
        if self._failing and not by_kind:
            _log.info("the active producers of all partitions are seen again")
        self._failing = frozenset(by_kind)
        if skipped and not self._skipped:
            _log.warning(
                "%d partitions are too many to be scanned, and what producers write there counts "
                "for nobody; with SIDECAR_BROKER_ID each sidecar scans its own broker's",
                skipped,
            )
        self._skipped = skipped

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)
