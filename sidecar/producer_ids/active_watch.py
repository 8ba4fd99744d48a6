"""Scans regularly which producer ids write, so that only these count (KIP-936).

The sidecar asks partition leaders for their active producers. An id that wrote since the last scan
counts for its owner as soon as the owner is known, and is reported to the other sidecars. An id on
a partition that can't be read does not count. This is logged once for each kind of failure, and
once when it is over. After a scan, the sidecar pauses nine times as long as the scan took, at most
half a minute, so that it spends a tenth of the time on brokers' answers. After a failure, it does
not use that address for up to 10 s.

With observers (``SIDECAR_OBSERVERS``), only these scan, and they report to the other sidecars,
unless each sidecar scans the partitions of its own broker.

At the start nothing is scanned. The first scan of a partition counts only ids that were allocated
in the last minute: see ``quotas.producer_ids.active_ids``. If an owner is reported up to
``WAIT_MS`` after the first scan, the id counts then, because the log may be read after the scan.

Example: bob's producer gets id 7 and writes a second later. The id counts for bob at the next scan,
at most two seconds later. A producer that never writes does not count.

Source: KIP-936, "New Quota Types": the rate at which produce requests come with new ids.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Final, Protocol

from sidecar.control.poller import always
from sidecar.kafka.active_producers import OnStates, ScanResult
from sidecar.kafka.leaders import Partition
from sidecar.kafka.producer_messages import ProducerStates
from sidecar.quotas.producer_ids.active_ids import WAIT_MS, ActiveIds, WrittenSince
from sidecar.volumes import Failure, FailureKind

_log = logging.getLogger(__name__)

TIMEOUT_S: Final = 30.0
"""The deadline of one scan."""
LONGEST_PAUSE_S: Final = 30.0
"""The longest pause after a scan, unless the interval is longer."""

_PAUSE_PER_SCAN: Final = 9
_MOST_SEEN_FIRST: Final = 10_000
"""How many ids of first scans are kept for ``WAIT_MS`` (about 1 MB)."""


class ProducerSource(Protocol):
    """Reads the active producers; see ``sidecar.kafka.active_producers``."""

    @property
    def partitions(self) -> Mapping[int, list[Partition]]:
        """Those that are scanned."""

    async def scan(self, on_states: OnStates, timeout_s: float) -> ScanResult | Failure:
        """Scans once."""


@dataclass(slots=True)
class ActiveIdWatch:
    """Counts ids that write.

    Attributes:
        source: asks the leaders.
        ids: the known owners, and the ids whose owner is not known yet; none at first.
        count: is called with each user and id that counts.
        report: is called with each id that wrote, and its owner if known, for other sidecars.
        clock: returns steady seconds.
        interval_s: the shortest time between two scans, above 0.
        is_wanted: returns whether this sidecar must scan now.
        last_scan: the result of the last scan; None before the first, and while no broker can be
            asked.
        failure: why no broker could be asked; None if one could.
        active: how many ids wrote between the last two scans.
        is_scanning: whether this sidecar scans; if not, other sidecars scan for it.
    """

    source: ProducerSource
    ids: ActiveIds
    count: Callable[[str, int], None]
    report: Callable[[str | None, int], None]
    clock: Callable[[], float]
    interval_s: float
    is_wanted: Callable[[], bool] = always
    last_scan: ScanResult | None = field(default=None, init=False)
    failure: Failure | None = field(default=None, init=False)
    active: int = field(default=0, init=False)
    is_scanning: bool = field(default=True, init=False)
    _since: WrittenSince = field(init=False)
    _seen_first: dict[int, int] = field(init=False)
    """The ids that a partition's first scan found, and when, the earliest first."""
    _partitions: Mapping[int, list[Partition]] = field(default_factory=dict, init=False)
    _wrote: set[int] = field(default_factory=set, init=False)
    _failing: frozenset[FailureKind] = field(default_factory=frozenset, init=False)
    _skipped: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._forget()

    def allocated(self, user: str, producer_id: int) -> None:
        """Record the owner of an id, from a request log."""
        now_ms = self._now_ms()
        if self.ids.allocated(user, producer_id, now_ms) is not None:
            self.count(user, producer_id)
        elif now_ms - self._seen_first.get(producer_id, -math.inf) <= WAIT_MS:
            self._wrote_here(producer_id, now_ms)

    def wrote(self, producer_id: int) -> None:
        """Record that an id wrote, as another sidecar reports."""
        attribution = self.ids.wrote(producer_id, self._now_ms())
        if attribution is not None and attribution.user is not None:
            self.count(attribution.user, producer_id)

    async def run(self) -> None:
        """Scan until cancelled."""
        while True:
            begin = self.clock()
            self.is_scanning = self.is_wanted()
            if self.is_scanning:
                await self.scan()
            else:
                self._forget()
            self.ids.tick(self._now_ms())
            rest_s = min(_PAUSE_PER_SCAN * (self.clock() - begin), LONGEST_PAUSE_S)
            await asyncio.sleep(max(self.interval_s, rest_s))

    async def scan(self) -> None:
        """Scans once."""
        self._wrote = set()
        now_ms = self._now_ms()
        fresh = self.ids.fresh(now_ms)
        self._seen_first = {
            each: at_ms for each, at_ms in self._seen_first.items() if now_ms - at_ms <= WAIT_MS
        }
        last_scan = await self.source.scan(partial(self._take, fresh), TIMEOUT_S)
        self.active = len(self._wrote)
        self.failure = last_scan if isinstance(last_scan, Failure) else None
        self.last_scan = None if isinstance(last_scan, Failure) else last_scan
        self._log_failures(last_scan)
        if self.source.partitions is not self._partitions:
            self._partitions = self.source.partitions
            self._since.retain(chain.from_iterable(self._partitions.values()))

    def _forget(self) -> None:
        # Other sidecars have reported what wrote in the meantime, so the next scan is a first one.
        self.last_scan, self.failure, self.active = None, None, 0
        longest_s = 4 * max(self.interval_s, LONGEST_PAUSE_S)
        self._since = WrittenSince(max(self.ids.window_ms, int(longest_s * 1000)))
        self._seen_first = {}

    def _take(self, fresh: Container[int], partition: Partition, states: ProducerStates) -> None:
        now_ms = self._now_ms()
        if partition not in self._since:
            room = _MOST_SEEN_FIRST - len(self._seen_first)
            self._seen_first |= {state[0]: now_ms for state in islice(states, room)}
        for producer_id in self._since.scan(partition, states, now_ms, fresh):
            self._wrote.add(producer_id)
            self._wrote_here(producer_id, now_ms)

    def _wrote_here(self, producer_id: int, now_ms: int) -> None:
        attribution = self.ids.wrote(producer_id, now_ms)
        if attribution is None:
            return
        self.report(attribution.user, producer_id)
        if attribution.user is not None:
            self.count(attribution.user, producer_id)

    def _log_failures(self, last_scan: ScanResult | Failure) -> None:
        if isinstance(last_scan, Failure):
            failures, where, skipped = [last_scan], "", 0
        else:
            failures, skipped = list(last_scan.failures.values()), last_scan.skipped
            where = f" of {len(failures)} partitions"
        by_kind = {failure.kind: failure for failure in failures}
        for kind in by_kind.keys() - self._failing:
            _log.warning(
                "the active producers%s can't be read, and their ids throttle no user: %s",
                where,
                by_kind[kind].message,
            )
        if self._failing and not by_kind:
            _log.info("the active producers of all partitions are read again")
        self._failing = frozenset(by_kind)
        if skipped and not self._skipped:
            _log.warning(
                "%d partitions are too many to be scanned, and their producer ids throttle no "
                "user; with SIDECAR_BROKER_ID each sidecar scans only its own broker",
                skipped,
            )
        self._skipped = skipped

    def _now_ms(self) -> int:
        return int(self.clock() * 1000)
