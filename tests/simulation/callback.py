"""The quota callback of one broker, as a model of the jar's rules: whom it asks, how clients pause.

With the authorizer it also says which requests are refused before the append (``refusals``).

It asks the sidecar beside its broker, and others where it has their addresses: by turns, each a
second after the last has answered or failed. While none answers, the last document is in force
until its validity ends, and the fallback after that, but for what the broker sees of its own
volume. Clients that share a quota share a tag set, whose rate and pauses are Kafka's; Kafka drops a
tag set an hour after its last request.

Example: at factor 0 on a broker that took 6 MB/s, three clients with requests of 20 kB pause for
1.1 s each, so that 54 kB/s leak: nine tenths of a hundredth.

Left out: what ``pauses`` and ``following`` name; the bucket of the property ``produce``; the bound
of 16,384 clients that are resolved at a time.

Source: CallbackRuntime, SidecarReader, OtherSidecars, Quotas and SidecarClient in
deploy/quota-callback; ClientQuotaManager in Kafka 4.3.1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sidecar.quotas.entities import QuotaKey, entities_of, resolve
from sidecar.quotas.throttle_time import unbounded_ms
from tests.simulation.following import Following, KeptDocument, read_answer
from tests.simulation.pauses import Enforcement
from tests.simulation.refusals import Connection, Refusal, Refusals
from tests.simulation.throttles import NO_QUOTA, Moment, Share, TagSet, Terms

PATH: Final = "/v1/quota-factors"
CONNECT_TIMEOUT_S: Final = 1.0
"""After which a connection that is not made is a failure."""

_NANOS_PER_S: Final = 1_000_000_000
_HEADERS: Final[Mapping[str, str]] = {
    "User-Agent": "throttle-sidecar-quota-callback",
    "Accept": "application/json",
    "Connection": "close",
}
_TIMEOUT_NANOS: Final = 2 * _NANOS_PER_S
"""What an answer may take beyond the requested wait."""

_EXPIRY_MS: Final = 3_600_000
_EXPIRY_CHECK_NANOS: Final = 30 * _NANOS_PER_S
"""How often Kafka looks for sensors that have expired."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A GET on a connection of its own.

    Attributes:
        url: of the document.
        etag: of the last document; None: there is none.
        wait_s: for how long the sidecar may wait for a change.
        headers: all that are sent but Host.
        timeout_s: after which the request has failed, from its connect on.
    """

    url: str
    etag: str | None
    wait_s: int
    headers: Mapping[str, str]
    timeout_s: float


class Callback:
    """A broker's callback, and its Kafka's produce quotas. All times are of one monotonic clock.

    Args:
        broker_id: it reports as.
        sidecar_urls: the own one's first.
        now_s: the broker's start.
        kept: what an earlier process of the broker left on its disk.
        wall_ms: what the broker's wall clock is before the monotonic one.
        terms: as the attributes of ``Terms``.
    """

    def __init__(
        self,
        broker_id: int,
        sidecar_urls: Sequence[str],
        now_s: float,
        kept: KeptDocument | None = None,
        *,
        wall_ms: int = 0,
        **terms: Any,
    ) -> None:
        self._broker_id = broker_id
        settings = Terms(**terms)
        # Switched off, nobody is asked: nor are others.
        asked = sidecar_urls if settings.enabled else sidecar_urls[:1]
        self._url, *self._others = (url.rstrip("/") + PATH for url in asked)
        # Switched off, quotas are those of Kafka's own callback.
        self._terms = settings if settings.enabled else replace(settings, excluded=frozenset())
        self._wall_offset_ms = wall_ms
        now = self._moment(now_s)
        self._following = Following(
            enabled=self._terms.enabled,
            fallback=self._terms.fallback,
            now_nanos=now.nanos,
            ramp_ms=self._terms.ramp_lasts_ms,
            others=len(self._others),
        )
        self._tag_sets: dict[tuple[str, str], TagSet] = {}
        self._throttled_users: frozenset[str] = frozenset()
        self._clients: dict[tuple[str, str], tuple[str, str]] = {}
        self._limits: dict[tuple[str, str], float] = {}
        self._enforcement = Enforcement(self._tag_sets.values, self._own, self._terms, now)
        self._refusals = Refusals()
        self._started_s = now_s
        self._stepped_s: float | None = None
        self._request: Request | None = None
        if kept is not None:
            self._following.remember(kept, now.wall_ms, now.nanos)
        self._deadline = now.nanos
        self._expiry_check = now.nanos + _EXPIRY_CHECK_NANOS

    def next_request(self, now_s: float) -> Request | None:
        """The request to send now; None when none is due."""
        now = self._step(now_s)
        due = self._following.next_request(now.nanos)
        if due is None:
            return None
        etag, wait_s = due
        timeout_nanos = wait_s * _NANOS_PER_S + _TIMEOUT_NANOS
        self._deadline = now.nanos + timeout_nanos
        self._enforcement.note_clock(now)
        headers = self._headers(etag, wait_s)
        timeout_s = timeout_nanos / _NANOS_PER_S
        self._request = Request(self._url, etag, wait_s, headers, timeout_s)
        return self._request

    def next_wake(self, now_s: float) -> float:
        """When ``next_request`` is to be called, which also ends what has expired; may be past."""
        due = self._following.next_nanos(self._moment(now_s).nanos)
        if self._request is not None:
            due = min(due, self._deadline)
        return due / _NANOS_PER_S

    def on_answer(
        self,
        request: Request,
        status: int | None,
        headers: Mapping[str, str],
        body: bytes,
        now_s: float,
        *,
        began_s: float | None = None,
    ) -> None:
        """The answer to a request; that to an earlier one is ignored.

        Args:
            request: from ``next_request``.
            status: None: no answer, or no whole one.
            headers: by any case.
            body: whole.
            now_s: when its last byte came.
            began_s: when its first byte came; None: at once with the last.
        """
        now = self._step(now_s)
        if request is not self._request:
            return
        began = now if began_s is None else self._moment(began_s)
        answer = None if status is None else read_answer(status, headers, body, request.etag)
        self._request = None
        self._following.on_answer(answer, began.nanos, now.nanos)
        self._step_again(now_s)

    @property
    def others(self) -> Sequence[Request]:
        """What each of the other sidecars is asked, by turns."""
        timeout_s = _TIMEOUT_NANOS / _NANOS_PER_S
        headers = {**_HEADERS, "Throttle-Broker": str(self._broker_id)}
        return [Request(url, None, 0, headers, timeout_s) for url in self._others]

    def on_other(
        self,
        number: int,
        status: int | None,
        headers: Mapping[str, str],
        body: bytes,
        now_s: float,
        *,
        began_s: float | None = None,
    ) -> bool:
        """The answer of another sidecar, by its number in ``others``; else as ``on_answer``.

        Returns:
            Whether it is a valid one.
        """
        self._step(now_s)
        began = self._moment(now_s if began_s is None else began_s)
        answer = None if status is None else read_answer(status, headers, body, None)
        self._following.on_other(number, answer, began.nanos)
        self._step_again(now_s)
        return answer is not None

    def see(self, available: int, total: int, now_s: float, log_dir: str = "") -> None:
        """What one of the broker's own volumes has, bytes."""
        self._following.see(available, total, log_dir)
        self._step_again(now_s)

    def kept(self) -> KeptDocument | None:
        """What is on the broker's disk for its next process."""
        return self._following.kept()

    def factor(self, now_s: float) -> float:
        """Of all clients; single users may have a smaller one."""
        self._step(now_s)
        return self._enforcement.factors.factor

    def source(self, now_s: float) -> str:
        """Where the factor comes from, as in ``Source``."""
        self._step(now_s)
        return self._enforcement.factors.source

    def stop(self, now_s: float) -> bool:
        """Whether nothing is to be admitted."""
        self._step(now_s)
        return self._enforcement.factors.stop

    def is_lifted(self, now_s: float) -> bool:
        """Whether an operator's word is in force, against which the broker's eyes don't count."""
        self._step(now_s)
        return self._following.is_lifted

    def end(self) -> None:
        """Its broker has ended. Tasks that never go on refer to it until the world ends."""
        self._refusals = Refusals()

    def pause_max_s(self, now_s: float) -> float:
        """The longest pause that its settings and its sidecar allow."""
        self._step(now_s)
        return self._enforcement.factors.leak.cap_ms(self._terms) / 1000.0

    def refusal(
        self, user: str, client_id: str, connection: Connection, now_s: float
    ) -> Refusal | None:
        """Whether the authorizer refuses a produce request; None: it may be appended."""
        now, enforcement = self._step(now_s), self._enforcement
        tags = self._tags_of(user, client_id)
        tag_set = self._tag_sets.get(tags)
        share = Share(tags, 0.0 if tag_set is None else tag_set.before)
        return self._refusals.check(
            connection,
            now.nanos,
            stops_anybody=enforcement.stops_anybody,
            stops=enforcement.stops(tags[0]),
            admits_nobody=enforcement.factors.stop,
            admits=lambda: enforcement.admits(share, tags[0], now.nanos),
        )

    @property
    def throttle(self) -> tuple[float, int]:
        """Differs for each throttle of each process: when that started, and which of its own."""
        return self._started_s, self._enforcement.epoch

    def charge(
        self, user: str, client_id: str, connection: int, nbytes: int, now_s: float
    ) -> float:
        """Charges a produce request that was appended.

        Args:
            user: the principal's name.
            client_id: as clients send it.
            connection: the callback does not know it: Kafka mutes it.
            nbytes: of the request.
            now_s: now.

        Returns:
            How long Kafka mutes the connection, and makes the client wait, ms.
        """
        now = self._step(now_s)
        tags = self._tags_of(user, client_id)
        tag_set = self._tag_sets.get(tags)
        if tag_set is None:
            tag_set = self._tag_sets[tags] = TagSet(tags, now)
            self._enforcement.appeared(tag_set)
        else:
            self._enforcement.before_record(tag_set, now)
        tag_set.rate.record(nbytes, now.wall_ms)
        tag_set.last_record_ms = now.wall_ms
        quota = self._enforcement.quota(tag_set, now)
        rate, window_ms = tag_set.rate.observe(now.wall_ms)
        return max(0.0, float(_as_int(unbounded_ms(rate, quota, window_ms))))

    def step_wall(self, ms: int) -> None:
        """The broker's wall clock is set, by which Kafka's rates go."""
        self._wall_offset_ms += ms
        self._stepped_s = None

    def _moment(self, now_s: float) -> Moment:
        nanos = round(now_s * _NANOS_PER_S)
        return Moment(nanos, nanos // 1_000_000 + self._wall_offset_ms)

    def _step(self, now_s: float) -> Moment:
        """Puts in force what is due.

        Asking again at the same moment changes nothing. Skipping it saves a fifth of the run time.
        """
        now = self._moment(now_s)
        if now_s == self._stepped_s:
            return now
        self._stepped_s = now_s
        self._expire(now)
        if self._request is not None and now.nanos >= self._deadline:
            self._request = None
            self._following.on_answer(None, now.nanos, now.nanos)
        factors = self._following.decide(now.nanos)
        if factors is not None:
            # Users that are throttled have tags of their own before that.
            self._apart(self._enforcement.throttled_users | factors.users.keys())
            self._enforcement.apply(factors, now)
            self._apart(self._enforcement.throttled_users)
        self._following.keep(now.wall_ms, now.nanos)
        return now

    def _step_again(self, now_s: float) -> None:
        """Puts in force what an answer or a reading changed at a moment."""
        self._stepped_s = None
        self._step(now_s)

    def _apart(self, users: frozenset[str]) -> None:
        if self._throttled_users != users:
            self._throttled_users = users
            self._clients.clear()
            self._limits.clear()

    def _expire(self, now: Moment) -> None:
        if now.nanos < self._expiry_check:
            return
        since = (now.nanos - self._expiry_check) % _EXPIRY_CHECK_NANOS
        checked_ms = (now.nanos - since) // 1_000_000 + self._wall_offset_ms
        self._expiry_check = now.nanos - since + _EXPIRY_CHECK_NANOS
        for tags, tag_set in list(self._tag_sets.items()):
            if checked_ms - tag_set.last_record_ms > _EXPIRY_MS:
                del self._tag_sets[tags]

    def _headers(self, etag: str | None, wait_s: int) -> dict[str, str]:
        throttled, emergency = self._enforcement.throttled(), self._enforcement.is_emergency
        headers = {
            **_HEADERS,
            "Throttle-Reader": f"broker={self._broker_id}; emergency={str(emergency).lower()};"
            f" throttled_clients={throttled}",
        }
        if etag is not None:
            headers |= {"If-None-Match": etag, "Prefer": f"wait={wait_s}"}
        return headers

    def _tags_of(self, user: str, client_id: str) -> tuple[str, str]:
        tags = self._clients.get((user, client_id))
        if tags is None:
            tags = self._clients[user, client_id] = self._tags(user, client_id)
        return tags

    def _tags(self, user: str, client_id: str) -> tuple[str, str]:
        """By which a client shares its quota; "" for a part that does not count."""
        tags = self._tags_by_levels(user, client_id)
        return (user, client_id) if not tags[0] and self._has_own_tags(user) else tags

    def _tags_by_levels(self, user: str, client_id: str) -> tuple[str, str]:
        kinds = {
            (entity.user is not None, entity.client_id is not None)
            for entity, limits in self._terms.quotas.items()
            if QuotaKey.PRODUCE in limits
        }
        if len(kinds) == 1:
            # With quotas of one kind only, every client has that kind's tags.
            by_user, by_client = kinds.pop()
            return user if by_user else "", client_id if by_client else ""
        resolved = resolve(self._terms.quotas, QuotaKey.PRODUCE, user, client_id)
        return ("", client_id) if resolved is None else resolved.tags

    def _has_own_tags(self, user: str) -> bool:
        return user in self._terms.excluded or user in self._throttled_users

    def _own(self, tags: tuple[str, str]) -> float:
        """The quota that operators set for tags, bytes per second."""
        limit = self._limits.get(tags)
        if limit is None:
            limit = self._limit(tags)
            if limit is None and tags[0] and self._has_own_tags(tags[0]):
                limit = self._limit(self._tags_by_levels(*tags))
            limit = self._limits[tags] = NO_QUOTA if limit is None else limit
        return limit

    def _limit(self, tags: tuple[str, str]) -> float | None:
        for entity in entities_of(*tags):
            limit = self._terms.quotas.get(entity, {}).get(QuotaKey.PRODUCE)
            if limit is not None:
                return limit
        return None


def _as_int(throttle_ms: int) -> int:
    """Its lower 32 bits, as brokers up to 4.3.1 keep it."""
    low = throttle_ms & 0xFFFF_FFFF
    return low - (1 << 32) if low >= 1 << 31 else low
