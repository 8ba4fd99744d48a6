"""The documents for long polls, made from a snapshot.

GET /v1/throttle-factor has the factor for the whole cluster and its reason; as text, it is the bare
number. GET /v1/quota-factors has everything that a broker's quota callback needs: the factor for
all, the factors of users, the time until the first volume is full, and how much brokers may let
through while the factor is 0.

Three values move without a new document. They are in headers, since a 304 has no body: a factor on
its slope, the time until the first volume is at its limit, and how much the asking broker may let
through.

The documents are requested all the time, so each is made once for a snapshot. Each answer adds how
long it may be used, and the seconds that are left.

Example: ``{"factor":0.0,…,"valid_for_ms":298500,"generation":3,"seconds_to_full":3.500,…}``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from msgspec import Raw
from starlette.responses import Response

from sidecar.api.answers import Wall, encode, timestamp
from sidecar.api.documents import (
    BudgetFactorDocument,
    FactorDocument,
    LeakDocument,
    QuotaFactorsDocument,
)
from sidecar.api.preferences import prefers_text
from sidecar.api.views import (
    leak_documents,
    limit_document,
    limit_reached_at,
    shadow_document,
    violations,
)
from sidecar.control.board import Snapshot
from sidecar.throttle.decision import Source
from sidecar.throttle.full import limit_at, soonest_full_at
from sidecar.throttle.leak import LeakRules
from sidecar.throttle.readers import ReaderCounts

VALID_FOR: Final = "Throttle-Valid-For-Ms"
OBSERVED_AGO: Final = "Throttle-Observed-Ms-Ago"
LIMIT_IN: Final = "Throttle-Limit-In-Ms"
FACTOR: Final = "Throttle-Factor"
LEAK_SHARE: Final = "Throttle-Leak-Share"
PAUSE_MAX: Final = "Throttle-Pause-Max-Ms"

_FORESEEN_S: Final = 60.0
"""How far ahead callbacks get the time of the limit, by which they throttle without a sidecar."""

_prefers_text = lru_cache(maxsize=64)(prefers_text)


@dataclass(frozen=True, slots=True)
class Collected:
    """The contents of a document for one snapshot.

    Attributes:
        ends_at: the end of the document's countdown, in steady seconds; None if there is none.
        document: (how long it may be used in ms, the seconds left) -> the complete document.
        leaks: broker id -> how much the broker may let through while it throttles.
        limit_at: when the first volume will reach its limit, in steady seconds; None if unknown.
    """

    ends_at: float | None
    document: Callable[[int, Raw], object]
    leaks: Mapping[int, LeakDocument] = field(default_factory=dict)
    limit_at: float | None = None

    def seconds_left(self, now: float) -> str | None:
        """Return the seconds left, with milliseconds; never below 0."""
        return None if self.ends_at is None else f"{max(0.0, self.ends_at - now):.3f}"


@dataclass(slots=True)
class LongPollDocument:
    """Answers requests with the document of the current snapshot.

    Attributes:
        collect: (snapshot, steady seconds) -> the document's contents.
        wall: converts steady seconds to epoch seconds.
        plain_text: the answer for clients that prefer text.
        is_for_callbacks: whether brokers' quota callbacks read it, which also use headers.
    """

    collect: Callable[[Snapshot, float], Collected]
    wall: Wall
    plain_text: Callable[[Snapshot], str] | None = None
    is_for_callbacks: bool = False
    _last: tuple[Snapshot, float, Collected] | None = field(default=None, init=False)

    def headers(self, snapshot: Snapshot, now: float, broker_id: int | None) -> dict[str, str]:
        """Return the headers that only this document has.

        Args:
            snapshot: the published snapshot.
            now: steady seconds.
            broker_id: the broker whose callback asks; None if the request does not name it.
        """
        headers = {} if self.plain_text is None else {"Vary": "Accept"}
        if snapshot.decision.is_sloped:
            headers[FACTOR] = f"{snapshot.decision.factor:g}"
        if not self.is_for_callbacks:
            return headers
        collected = self._current(snapshot, now)
        if collected.limit_at is not None and collected.limit_at - now <= _FORESEEN_S:
            headers[LIMIT_IN] = str(int(max(0.0, collected.limit_at - now) * 1000))
        leak = None if broker_id is None else collected.leaks.get(broker_id)
        if leak is not None:
            headers[LEAK_SHARE] = f"{leak.share:.6f}"
            headers[PAUSE_MAX] = str(leak.pause_max_ms)
        return headers

    def answer(
        self, snapshot: Snapshot, now: float, accept: str, headers: dict[str, str]
    ) -> Response:
        """Return the document in the preferred form."""
        if self.plain_text is not None and _prefers_text(accept):
            return Response(self.plain_text(snapshot), headers=headers, media_type="text/plain")
        collected = self._current(snapshot, now)
        seconds_left = Raw((collected.seconds_left(now) or "null").encode())
        body = encode(collected.document(int(headers[VALID_FOR]), seconds_left))
        return Response(body, headers=headers, media_type="application/json")

    def _current(self, snapshot: Snapshot, now: float) -> Collected:
        offset_s = self.wall(0.0)
        last = self._last
        if last is None or last[0] is not snapshot or last[1] != offset_s:
            last = self._last = snapshot, offset_s, self.collect(snapshot, now)
        return last[2]


def factor_document(wall: Wall, readers: Callable[[], ReaderCounts]) -> LongPollDocument:
    """Return the document of the throttle factor.

    Args:
        wall: steady seconds -> epoch seconds of the machine's clock.
        readers: counts the brokers that read this sidecar now, and the lowered quotas.
    """

    def collect(snapshot: Snapshot, _now: float) -> Collected:
        decision, rules = snapshot.decision, snapshot.rules
        # There may be thousands.
        violating = Raw(encode(list(violations(decision.violations, rules.limit))))
        at_stop_line = Raw(encode(list(violations(decision.at_stop_line, rules.stop_line))))
        topics = Raw(encode(decision.topics))
        computed_at = timestamp(wall, decision.computed_at)
        valid_until = timestamp(wall, decision.valid_until)
        since = timestamp(wall, snapshot.since) or ""

        def document(valid_for_ms: int, seconds_left: Raw) -> FactorDocument:
            counts = readers()
            return FactorDocument(
                factor=decision.factor,
                source=decision.source.value,
                reason=decision.reason,
                violations=violating,
                slope=decision.is_sloped,
                stop_line_reached=decision.stop_line_reached,
                stop_line_violations=at_stop_line,
                computed_at=computed_at,
                valid_until=valid_until,
                valid_for_ms=valid_for_ms,
                since=since,
                generation=snapshot.generation,
                seconds_to_limit=seconds_left,
                cluster_id=snapshot.memory.cluster_id,
                topics=topics,
                readers=counts.readers,
                enforcement=counts.enforcement,
                lowered_quotas=counts.lowered,
                shadow=shadow_document(decision.shadow),
            )

        return Collected(limit_reached_at(snapshot), document)

    return LongPollDocument(
        collect, wall, plain_text=lambda snapshot: repr(snapshot.decision.factor)
    )


def quota_factors_document(wall: Wall, leak_rules: LeakRules) -> LongPollDocument:
    """Return the document of all quota factors.

    Args:
        wall: steady seconds -> epoch seconds of the machine's clock.
        leak_rules: the rules by which brokers may let through less.
    """

    def collect(snapshot: Snapshot, now: float) -> Collected:
        decision, rules = snapshot.decision, snapshot.rules
        limit = rules.limit
        users = Raw(encode(dict(decision.users)))
        topics = Raw(encode(decision.topics))
        leaks = leak_documents(snapshot.leaks, leak_rules)
        listed = Raw(encode(list(leaks.values())))
        budgets = Raw(
            encode(
                [
                    BudgetFactorDocument(owner, each.factor, list(each.topics))
                    for owner, each in decision.budgets.items()
                ]
            )
        )
        # In observe mode, a broker must not throttle by the readings of its own callback either.
        is_enforced = decision.shadow is None
        own_limit = limit_document(limit) if is_enforced else None
        own_stop_line = limit_document(rules.stop_line) if is_enforced else None

        def document(valid_for_ms: int, seconds_left: Raw) -> QuotaFactorsDocument:
            return QuotaFactorsDocument(
                factor=decision.factor,
                source=decision.source.value,
                reason=decision.reason,
                users=users,
                slope=decision.is_sloped,
                stop=decision.stop_line_reached,
                valid_for_ms=valid_for_ms,
                generation=snapshot.generation,
                seconds_to_full=seconds_left,
                cluster_id=snapshot.memory.cluster_id,
                limit=own_limit,
                stop_line=own_stop_line,
                release_margin=limit.release_margin if limit else 0.0,
                scope="volume" if decision.is_of_volumes else "cluster",
                topics=topics,
                budgets=budgets,
                leaks=listed,
            )

        # Computed as of now, so a reading that expires before the next poll counts until then.
        volumes = snapshot.memory.valid_volumes(rules.validity_s, now)
        ends_at = soonest_full_at(volumes, leak_rules.window_s(snapshot.leaks))
        computed = decision.source is Source.OBSERVATION and decision.factor > 0.0
        foreseen = limit_at(snapshot.memory, rules.validity_s, now) if computed else None
        return Collected(ends_at, document, leaks, foreseen)

    return LongPollDocument(collect, wall, is_for_callbacks=True)
