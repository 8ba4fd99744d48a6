"""How the quota callback follows sidecars: which request is due, which factors are in force.

A document is valid while now <= answer + validity; each answer, a 304 too, renews it. After that,
and before the first answer, the fallback is in force. The own sidecar may wait 10 s for a change
before it answers, 1 s while something is throttled, and not at all after a failure. Where there are
others, ``said`` says whose word counts; a failed request changes nothing where there are none.

A broker looks at its own volumes too, and compares each with the lines of the last document: at or
below the limit it throttles, whatever the sidecar says, but for an override and a sidecar that is
switched off; at or below the stop line nothing is admitted, until it is a tenth above. The last
document of the own sidecar is kept on disk, and counts as long as it would have after a restart.

Example: answered at second 0, valid for 5 min, no answer from then on: a request every 500 ms;
after 300 s the fallback; the sidecar starts at 400 s, and its factor is in force by 400.5 s.

Left out: settings that change while the broker runs; bounds on what a hostile document costs; a
disk that keeps nothing.

Source: ReaderState, OwnVolumes, DocumentFile, SidecarClient and DocumentReader, all of them in
deploy/quota-callback.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.simulation.last_answer import (
    LastAnswer,
    counting,
    forecasts,
    leak_of,
    strictest,
    users_of,
)
from tests.simulation.throttles import DISABLED, WHOLE, Factors, Leak, Source

WAIT_S: Final = 10
WAIT_THROTTLED_S: Final = 1

_MS: Final = 1_000_000
_CLOSE_NANOS: Final = 30_000 * _MS
"""A volume that is so close to its limit is heard of each second."""
_RETRY_NANOS: Final = 500 * _MS
_BACKOFF_NANOS: Final = 100 * _MS
_POLL_NANOS: Final = 1_000 * _MS
_TICK_NANOS: Final = 500 * _MS
_IDLE_NANOS: Final = 3_600_000 * _MS
_KEPT_AGAIN_MS: Final = 30_000

_MOST_BODY: Final = 4 << 20
_MOST_USERS: Final = 10_000
_LONGEST_NAME: Final = 1024
_LONGEST_VALIDITY_MS: Final = 365 * 24 * 3600 * 1000
_ETAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{0,200}"')
_WHOLE_MS: Final = re.compile("[0-9]{1,18}")
_LINES: Final = ("min_available_bytes", "min_available_ratio")
_BLIND: Final = ("override", "disabled", "shadow", "fallback")
_STOP_MARGIN: Final = 0.1
_SMALLEST_SHARE: Final = 0.001
_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")


@dataclass(frozen=True, slots=True)
class Line:
    """From where on a volume is too full, by what is available: bytes, or a share of all bytes."""

    is_ratio: bool
    value: float
    margin: float = 0.0

    def is_reached(self, available: int, total: int, *, was: bool) -> bool:
        """Whether so few bytes are available; by the margin more where that was so until now."""
        line = self.value + (self.margin if was else 0.0)
        return available <= (line * total if self.is_ratio else line)


@dataclass(frozen=True, slots=True)
class Document:
    """What a sidecar published.

    Attributes:
        factors: for all and for single users.
        valid_for_ms: from when its answer began.
        lifts: whether an operator decided it: what the broker itself sees does not count.
        sees: whether it is by an observation.
        says_stop: whether it says that nothing is to be admitted, by whatever.
        limit: of every volume; None: none.
        stop_line: likewise.
    """

    factors: Factors
    valid_for_ms: int
    lifts: bool = False
    sees: bool = True
    says_stop: bool = False
    limit: Line | None = None
    stop_line: Line | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a sidecar answered.

    Attributes:
        document: None: the last one is not modified.
        etag: sent with the next request; None: the document has none.
        valid_for_ms: from when the answer began.
        leak: of the broker that asked.
        observed_ms_ago: how old the observation behind it was then; 0: it does not say.
        limit_in_ms: how soon it expects the first volume at its limit; -1: not soon.
        factor: where it is on its slope by now; None: it is the document's.
    """

    document: Document | None
    etag: str | None
    valid_for_ms: int
    leak: Leak = WHOLE
    observed_ms_ago: int = 0
    limit_in_ms: int = -1
    factor: float | None = None


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """A document on a broker's disk.

    Attributes:
        at_ms: when it was last renewed, by the broker's wall clock.
        used_ms: how much of its validity had passed by then.
    """

    document: Document
    at_ms: int
    used_ms: int = 0


def read_answer(
    status: int, headers: Mapping[str, str], body: bytes, etag: str | None
) -> Answer | None:
    """An answer to a request with this entity tag; None: it is wrong, which is a failure."""
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        if status == 200:
            tag = lower.get("etag", "")
            document = _document(body)
            etag = tag if _ETAG.fullmatch(tag) else None
            return Answer(document, etag, document.valid_for_ms, *_moving(lower))
        if status == 304 and etag is not None:
            return Answer(None, None, _valid_for_ms(lower), *_moving(lower))
    except (ValueError, RecursionError):
        return None
    return None


def _valid_for_ms(headers: Mapping[str, str]) -> int:
    text = headers.get("throttle-valid-for-ms", "")
    if not _WHOLE_MS.fullmatch(text):
        raise ValueError("the validity is wrong")
    return min(int(text), _LONGEST_VALIDITY_MS)


def _leak(headers: Mapping[str, str]) -> Leak:
    share, pause = headers.get("throttle-leak-share"), headers.get("throttle-pause-max-ms")
    if share is None and pause is None:
        return WHOLE
    if not _NUMBER.fullmatch(share or "") or not _WHOLE_MS.fullmatch(pause or ""):
        raise ValueError("the leak is wrong")
    return Leak(min(1.0, max(_SMALLEST_SHARE, float(share or ""))), int(pause or ""))


def _moving(headers: Mapping[str, str]) -> tuple[Leak, int, int, float | None]:
    """The leak, the age of the observation, how soon a volume is at its limit, and the factor."""
    limit_in = headers.get("throttle-limit-in-ms")
    limit_in_ms = -1 if limit_in is None else _ms(limit_in)
    ago_ms = _ms(headers.get("throttle-observed-ms-ago", "0"))
    return _leak(headers), ago_ms, limit_in_ms, _factor_now(headers)


def _factor_now(headers: Mapping[str, str]) -> float | None:
    text = headers.get("throttle-factor")
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or float(text) > 1.0:
        raise ValueError("the factor is wrong")
    return float(text)


def _ms(text: str) -> int:
    if not _WHOLE_MS.fullmatch(text):
        raise ValueError("a header is wrong")
    return min(int(text), _LONGEST_VALIDITY_MS)


def _document(body: bytes) -> Document:
    if len(body) > _MOST_BODY:
        raise ValueError("too large")
    document = json.loads(
        body.decode(), object_pairs_hook=_without_duplicates, parse_constant=_refuse
    )
    match document:
        case {"reason": dict() | list()}:
            raise ValueError("a reason is text")
        case {"factor": factor, "valid_for_ms": valid_for_ms}:
            generation = _whole(document.get("generation", 0))
            users = _users(document)
            # Sidecars of earlier versions have no such member.
            source = document.get("source", "observation")
            lifts = source in {"override", "disabled", "shadow"}
            says_stop, sees = document.get("stop") is True, source not in _BLIND
            stop = says_stop and sees
            is_sloped = _flag(document.get("slope", False)) and source not in _BLIND
            factors = Factors(
                _factor(factor), Source.SIDECAR, users, generation, stop, is_sloped=is_sloped
            )
            limit, stop_line = _line(document.get("limit")), _line(document.get("stop_line"))
            if limit is not None:
                limit = replace(limit, margin=_positive(document.get("release_margin", 0.0)))
            if stop_line is not None:
                stop_line = replace(stop_line, margin=_STOP_MARGIN * stop_line.value)
            validity_ms = min(_whole(valid_for_ms), _LONGEST_VALIDITY_MS)
            return Document(factors, validity_ms, lifts, sees, says_stop, limit, stop_line)
    raise ValueError("no document")


def _flag(value: object) -> bool:
    match value:
        case bool():
            return value
    raise ValueError("it is neither true nor false")


def _line(value: object) -> Line | None:
    match value:
        case None:
            return None
        case {"type": str() as name, "value": number} if name in _LINES:
            return Line(name == "min_available_ratio", _positive(number))
    raise ValueError("it is no line, or of a type of a later version")


def _users(document: Mapping[str, Any]) -> dict[str, float]:
    match document.get("users", {}):
        case dict() as users if len(users) <= _MOST_USERS:
            if all(0 < len(name) <= _LONGEST_NAME for name in users):
                return {name: _factor(value) for name, value in users.items()}
    raise ValueError("users are wrong")


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is there twice")
    return members


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _factor(value: object) -> float:
    number = _positive(value)
    if number > 1.0:
        raise ValueError("not within [0, 1]")
    return number


def _positive(value: object) -> float:
    match value:
        case int() | float() if not isinstance(value, bool) and 0.0 <= value < math.inf:
            return float(value)
    raise ValueError("no finite number of at least 0")


def _whole(value: object) -> int:
    match value:
        case int():
            return int(_positive(value))
    raise ValueError("no whole number")


class Following:
    """Which factors are in force and which request is due.

    At first the fallback is in force and a request is due. All times are nanoseconds on one
    monotonic clock.

    Args:
        enabled: whether sidecars count at all.
        fallback: the factor without a valid document.
        now_nanos: the broker's start.
        others: how many sidecars are asked besides the own one.
    """

    def __init__(
        self, *, enabled: bool, fallback: float, now_nanos: int, ramp_ms: int, others: int = 0
    ) -> None:
        self._enabled = enabled
        self._settles_nanos = ramp_ms * _MS + 2 * _TICK_NANOS
        self._fallback = Factors(fallback, Source.FALLBACK)
        self._own = LastAnswer()
        self._others = [LastAnswer() for _ in range(others)]
        self._lines: Document | None = None
        self._readings: dict[str, tuple[int, int]] = {}
        self._violating: frozenset[str] = frozenset()
        self._is_stopped = False
        self._etag: str | None = None
        self._is_fresh = False
        self._is_requesting = False
        self._requested = now_nanos
        self._due = now_nanos
        self._applied: Factors | None = None
        self._changed = now_nanos
        self._tick = now_nanos
        self._kept: KeptDocument | None = None
        self.failures = 0
        self.is_lifted = False
        """Whether an operator's word is in force."""

    def next_request(self, now_nanos: int) -> tuple[str | None, int] | None:
        """The entity tag and the wait, s, of the request that is due; None when none is."""
        if not self._enabled or self._is_requesting or now_nanos < self._due:
            return None
        self._is_requesting = True
        self._requested = now_nanos
        throttling = self._applied is not None and self._applied.are_throttling
        throttling |= self._own.expects_limit_before(now_nanos + _CLOSE_NANOS)
        waits = self._etag is not None and self._own.answers
        return self._etag, (WAIT_THROTTLED_S if throttling else WAIT_S) if waits else 0

    def on_answer(self, answer: Answer | None, began_nanos: int, now_nanos: int) -> None:
        """The request under way is answered; None: it has failed."""
        self._is_requesting = False
        if answer is None:
            self._own.answers = False
            self._is_fresh |= bool(self._others)
            self.failures += 1
            self._due = max(now_nanos + _BACKOFF_NANOS, self._requested + _RETRY_NANOS)
            return
        self._own.hear(answer, began_nanos)
        self._lines = self._own.document
        if answer.document is not None:
            self._etag = answer.etag
        self._is_fresh = True
        # No sidecar waits for the change of a document without an entity tag.
        self._due = self._requested + (_POLL_NANOS if self._etag is None else _BACKOFF_NANOS)

    def on_other(self, number: int, answer: Answer | None, began_nanos: int) -> None:
        """Another sidecar, by its number from 0 on, has answered; None: it has not."""
        other = self._others[number]
        if answer is None:
            other.answers = False
        else:
            other.hear(answer, began_nanos)
            # One that only observes, or is switched off, has none: it shuts nobody's eyes.
            if not self._own.answers and other.document is not None and other.document.limit:
                self._lines = other.document
        self._is_fresh = True

    def see(self, available: int, total: int, log_dir: str) -> None:
        """What one of the broker's own volumes has, bytes."""
        self._readings[log_dir] = available, total

    def kept(self) -> KeptDocument | None:
        """What is on the broker's disk."""
        return self._kept

    def keep(self, wall_ms: int, now_nanos: int) -> None:
        """Writes the own sidecar's document to the disk, and renews its time now and again."""
        kept, document = self._kept, self._own.document
        if document is None or not self._own.answers:
            return
        is_same = kept is not None and kept.document is document
        if kept is None or not is_same or abs(wall_ms - kept.at_ms) >= _KEPT_AGAIN_MS:
            left_ms = (self._own.until_nanos - now_nanos) // _MS
            self._kept = KeptDocument(document, wall_ms, document.valid_for_ms - left_ms)

    def remember(self, kept: KeptDocument, wall_ms: int, now_nanos: int) -> None:
        """What was on the disk, before the first answer."""
        self._kept = kept
        age_ms = max(0, wall_ms - kept.at_ms + kept.used_ms)
        self._own.remember(kept.document, age_ms, now_nanos)
        self._lines = kept.document

    def decide(self, now_nanos: int) -> Factors | None:
        """The factors to apply now; None when there is no reason to."""
        factors = self._factors(now_nanos)
        if not self._is_like(factors):
            self._changed = now_nanos
        elif not self._is_fresh and not (self._settles(now_nanos) and now_nanos >= self._tick):
            return None
        self._is_fresh = False
        self._applied = factors
        self._tick = now_nanos + _TICK_NANOS
        return factors

    def next_nanos(self, now_nanos: int) -> int:
        """When ``next_request`` or ``decide`` is to be called again, if no answer comes."""
        due = [now_nanos + _IDLE_NANOS]
        if self._enabled and not self._is_requesting:
            due.append(self._due)
        if self._enabled:
            valid = [each for each in (self._own, *self._others) if each.is_valid(now_nanos)]
            due += [each.changes_nanos(now_nanos) for each in valid]
        if self._settles(now_nanos):
            due.append(self._tick)
        return min(due)

    def _is_like(self, factors: Factors) -> bool:
        """Whether nothing has changed: on its slope the factor moves without a change."""
        applied = self._applied
        if applied is None or not (factors.is_sloped and applied.is_sloped):
            return factors == applied
        return replace(factors, factor=applied.factor) == applied

    def _factors(self, now_nanos: int) -> Factors:
        if not self._enabled:
            return DISABLED
        words = counting(self._own, self._others, now_nanos)
        last = strictest(words)
        document = None if last is None else last.document
        # Another sidecar's override is for another broker.
        self.is_lifted = last is self._own and document is not None and document.lifts
        if last is None or document is None:
            return self._seen(self._fallback)
        factors, leak, factor = document.factors, leak_of(self._own, words), last.factor
        users = users_of(words)
        if (leak, factor, users) != (factors.leak, factors.factor, factors.users):
            factors = replace(factors, leak=leak, factor=factor, users=users)
        if self.is_lifted:
            return factors
        seen = self._seen(factors)
        if seen.factor > 0.0 and forecasts(self._own, self._others, now_nanos):
            return replace(seen, factor=0.0, source=Source.FORECAST, is_sloped=False)
        return seen

    def _seen(self, factors: Factors) -> Factors:
        """The same, unless one of the broker's own volumes is too full."""
        lines, were = self._lines, self._violating
        limit = None if lines is None else lines.limit
        self._violating = frozenset(
            log_dir
            for log_dir, reading in self._readings.items()
            if limit is not None and limit.is_reached(*reading, was=log_dir in were)
        )
        line, was = None if lines is None else lines.stop_line, self._is_stopped
        self._is_stopped = line is not None and any(
            line.is_reached(*self._readings[log_dir], was=was) for log_dir in self._violating
        )
        if not self._violating or (
            factors.factor == 0.0 and (factors.stop or not self._is_stopped)
        ):
            return factors
        stops = self._is_stopped or factors.stop
        return replace(factors, factor=0.0, source=Source.LOCAL, stop=stops, is_sloped=False)

    def _settles(self, now_nanos: int) -> bool:
        """Until a release is over factors are applied again and again: only then it ends."""
        return self._applied is not None and now_nanos - self._changed <= self._settles_nanos
