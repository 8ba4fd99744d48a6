"""The head of the status page: whether producers are throttled, why, since when and until when.

Example: "Producers are throttled: /kafka/data of broker 2 has 8.1 GB left, the limit is 10.0 GB."
Without a reader: "No broker reads this sidecar, so it throttles nobody. With a reader, producers
would be throttled: ...".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Final, Literal

from sidecar.api.views import limit_reached_at
from sidecar.control.board import Snapshot
from sidecar.status.fitting import of_decision
from sidecar.status.moments import Moment, Now
from sidecar.throttle.decision import Decision, Source
from sidecar.throttle.fill import seconds_to
from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import VolumeState
from sidecar.throttle.readers import ReaderCounts
from sidecar.throttle.reason import is_over, low_volumes, unknown, why_retained, within

Tone = Literal["free", "part", "stopped", "blind"]
"""The color: nobody, some or all producers are throttled, or the volumes can't be read."""

_OBSERVES: Final = "Nobody is throttled: this sidecar is in observe mode (SIDECAR_MODE=observe)."
_RETURNS: Final = "Until the factor source returns another factor."
_UNREFUSED: Final = (
    "None of the brokers that read this sidecar has the authorizer, so they refuse nobody."
)


@dataclass(frozen=True, slots=True)
class Until:
    """When the state ends, or the event that ends it.

    Attributes:
        text: a sentence, up to its moment.
        moment: the end of the sentence; None if the text is complete without it.
    """

    text: str
    moment: Moment | None = None


@dataclass(frozen=True, slots=True)
class ToDo:
    """The remedy, and the section of the page that has it."""

    text: str
    section: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The head of the page.

    Attributes:
        tone: the color.
        word: the tone in a word or two.
        factor: the throttle factor.
        source: the source of the factor.
        sentence: the state, and the cause of it.
        reason: the reason of the decision, if it adds to the sentence; else "".
        since: when factor and source began to apply.
        until: how long the state lasts, as far as that is known.
        to_do: the remedies, the first one first.
        runbooks: the names of the runbooks that fit, the first to read first.
    """

    tone: Tone
    word: str
    factor: float
    source: str
    sentence: str
    reason: str
    since: Moment
    until: tuple[Until, ...]
    to_do: tuple[ToDo, ...]
    runbooks: tuple[str, ...]


def headline(snapshot: Snapshot, counts: ReaderCounts, now: Now, not_stopped: str = "") -> Headline:
    """Return the head of the page.

    Args:
        snapshot: what is published.
        counts: the readers.
        now: the moment.
        not_stopped: a sentence about growth that a throttle does not stop; "" for none.
    """
    decision = snapshot.decision
    decided = decision.decided
    tone, word = _tone(decision, counts)
    says_more = decided.source in {Source.FALLBACK, Source.OVERRIDE}
    return Headline(
        tone=tone,
        word=word,
        factor=decision.factor,
        source=decision.source.value,
        sentence=f"{sentence(snapshot, counts)} {not_stopped}".rstrip(),
        reason=decided.reason if says_more else "",
        since=now.moment(snapshot.since),
        until=tuple(_until(replace(snapshot, decision=decided), now)),
        to_do=tuple(_to_do(replace(snapshot, decision=decided), counts)),
        runbooks=tuple(of_decision(snapshot, counts)),
    )


def sentence(snapshot: Snapshot, counts: ReaderCounts) -> str:
    """Return the main sentence, followed by sentences about more volumes and single users."""
    decision = snapshot.decision
    if decision.shadow is not None:
        would = sentence(replace(snapshot, decision=decision.shadow), counts)
        return f"{_OBSERVES} In enforce mode: {would[0].lower()}{would[1:]}"
    text = _before_limit(counts) if _is_near(decision, counts) else _sentence(snapshot, counts)
    is_for_nobody = _is_for_nobody(decision, counts) and not _throttles_some(decision, counts)
    if not counts.enforces and _throttles(decision, counts) and not is_for_nobody:
        why, otherwise = counts.unenforced
        text = f"{why} {otherwise} {text[0].lower()}{text[1:]}"
    if decision.stop_line_reached and len(decision.at_stop_line) > 1:
        text += f" {len(decision.at_stop_line)} volumes are affected."
    elif not decision.stop_line_reached and len(decision.violations) > 1:
        text += f" {len(decision.violations)} volumes violate it."
    if decision.users:
        user = "single user" if len(decision.users) == 1 else "single users"
        are = "is" if counts.readers and len(decision.users) == 1 else counts.of_users.are
        text += f" In addition, {len(decision.users)} {user} {are} throttled."
    text += _by_budgets(decision, counts)
    if decision.stop_line_reached and counts.readers and not counts.authorizers:
        text += f" {_UNREFUSED}"
    return text + _by_quotas(decision, counts)


def _by_budgets(decision: Decision, counts: ReaderCounts) -> str:
    """Say which owners are past their storage budgets; "" if none is, or client quotas slow it."""
    owners = len(decision.budgets)
    if not owners or counts.enforcement != "callback":
        return ""
    past = (
        "1 owner past its storage budget"
        if owners == 1
        else f"{owners} owners past storage budgets"
    )
    does = "are" if counts.authorizers else "would be"
    lack = " if the brokers had the authorizer" if counts.readers and not counts.authorizers else ""
    return (
        f" In addition, clients that write to the topics of {past} {does} slowed or refused{lack}."
    )


def _is_near(decision: Decision, counts: ReaderCounts) -> bool:
    """Whether client quotas are lowered before a limit is reached."""
    is_seen = decision.source is Source.OBSERVATION and decision.factor == 1.0
    return is_seen and counts.lowered > 0 and counts.near != ""


def _before_limit(counts: ReaderCounts) -> str:
    quotas = "1 produce quota is" if counts.lowered == 1 else f"{counts.lowered} produce quotas are"
    return f"{quotas} lowered before the limit is reached: {counts.near}."


def _by_quotas(decision: Decision, counts: ReaderCounts) -> str:
    """Say which producers client quotas throttle; "" if none is lowered."""
    if not counts.lowered or _is_near(decision, counts):
        return ""
    is_single = counts.lowered == 1
    quotas = "1 produce quota" if is_single else f"{counts.lowered} produce quotas"
    if decision.factor < 1.0:
        are = "is" if is_single else "are"
        lower = f" Some are lower, so that no limit is reached: {counts.near}."
        return (
            f" It applies to clients of {quotas}, which {are} lowered."
            f"{lower if counts.near and decision.factor > 0.0 else ''}"
        )
    if any(each.principals for each in decision.budgets.values()):
        return f" {quotas} {'is' if is_single else 'are'} lowered for storage budgets."
    return f" {quotas} still {'rises to its original' if is_single else 'rise to their originals'}."


def effect(factor: float, counts: ReaderCounts, who: str = "producers") -> str:
    """Describe the effect of a factor, such as "producers are throttled"."""
    if factor == 0.0:
        return f"{who} {counts.are} throttled"
    if factor == 1.0:
        return "nobody is throttled"
    return f"{who} {counts.are} slowed to {100 * factor:.4g} % of their quotas"


def effect_of(decision: Decision, counts: ReaderCounts) -> str:
    """Describe the effect of a decision: that of the stop line, or that of its factor."""
    if _is_for_nobody(decision, counts):
        return "nobody is throttled"
    who = _who(decision, counts)
    if decision.is_sloped:
        percent = f"{100 * decision.factor:.4g} %"
        return f"{who} {counts.are} slowed to {percent} of their previous rate"
    if decision.stop_line_reached and counts.can_refuse:
        return f"{who} {counts.are} refused"
    return effect(decision.factor, counts, who)


def _who(decision: Decision, counts: ReaderCounts) -> str:
    """Whose producers; a broker without an authorizer throttles everyone.

    Client quotas may have to throttle everyone too, so their number is told instead.
    """
    topics, is_by_quotas = decision.topics, counts.enforcement == "client-quotas"
    if topics is None or is_by_quotas or counts.authorizers < counts.readers:
        return "producers"
    return f"producers of {len(topics)} {'topic' if len(topics) == 1 else 'topics'}"


def _is_for_nobody(decision: Decision, counts: ReaderCounts) -> bool:
    """Whether a throttle is for no topic; a broker without an authorizer throttles everyone."""
    return decision.topics == () and counts.authorizers == counts.readers


def in_short(decision: Decision) -> str:
    """Describe a decision, whether or not brokers read it: "throttle producers"."""
    if decision.shadow is not None:
        return f"observe mode: {in_short(decision.shadow)}"
    if decision.topics == ():
        return "throttle nobody"
    if decision.stop_line_reached:
        return "refuse producers"
    if decision.factor in {0.0, 1.0}:
        return "throttle nobody" if decision.factor else "throttle producers"
    base = "previous rate" if decision.is_sloped else "quotas"
    return f"slow producers to {100 * decision.factor:.4g} % of their {base}"


def worst(violations: Sequence[VolumeState]) -> VolumeState:
    """Return the volume with the smallest available share."""
    return min(violations, key=lambda state: state.volume.available_ratio)


def short_of(snapshot: Snapshot) -> str:
    """Compare the worst violating volume with the limit, in words."""
    limit, violations = snapshot.rules.required_limit, snapshot.decision.violations
    return _compared(snapshot, violations, limit, "limit", limit.describe_margin())


def _short(snapshot: Snapshot) -> str:
    """Compare the worst volume with the stop line if it is reached, otherwise with the limit."""
    stop_line = snapshot.rules.stop_line
    if stop_line is None or not snapshot.decision.stop_line_reached:
        return short_of(snapshot)
    return _compared(snapshot, snapshot.decision.at_stop_line, stop_line, "stop line", "a tenth")


def _compared(
    snapshot: Snapshot, states: Sequence[VolumeState], limit: Limit, name: str, margin: str
) -> str:
    state = worst(states)
    volume = state.volume
    left = limit.left(volume)
    retained = why_retained(snapshot.memory, state)
    had = "had" if retained else "has"
    is_below = limit.judge(volume).violates
    text = f"the {name} is" if is_below else f"not yet {margin} above the {name} of"
    of_broker = f"{volume.log_dir} of broker {volume.broker_id}"
    return f"{of_broker} {had} {left} left{retained}, {text} {limit.describe()}"


def _throttles(decision: Decision, counts: ReaderCounts) -> bool:
    return decision.factor < 1.0 or _throttles_some(decision, counts)


def _throttles_some(decision: Decision, counts: ReaderCounts) -> bool:
    """Whether single users are throttled, or clients of owners past their storage budgets."""
    may = counts.authorizers > 0 or not counts.readers
    by_budgets = bool(decision.budgets) and counts.enforcement == "callback" and may
    return bool(decision.users) or by_budgets


def _sentence(snapshot: Snapshot, counts: ReaderCounts) -> str:
    decision = snapshot.decision
    does = effect_of(decision, counts)
    does = does[0].upper() + does[1:]
    if decision.source is Source.DISABLED:
        return f"{does}: this sidecar is disabled, since its check interval is PT0S."
    if decision.source is Source.FALLBACK:
        if snapshot.rules.limit is None:
            return f"{does}, by the fallback: {decision.reason}."
        memory = snapshot.memory
        if memory.computed is None:
            cause = unknown(memory) or "no volume has been read yet"
            return f"{does}, by the fallback: {cause}."
        answers = any(
            (broker := memory.brokers.get(broker_id)) is not None and not broker.is_silent
            for broker_id in memory.active
        )
        what = "some volumes" if memory.failure is not None and answers else "the volumes"
        return f"{does}, by the fallback: {what} can't be read any more."
    if decision.source is Source.OVERRIDE:
        shown = f", although {short_of(snapshot)}" if decision.violations else ""
        # An override to 0 throttles as the volumes would, so there is no "although".
        return f"{does}, by an override{shown if decision.factor > 0 else ''}."
    nobody = "; no topic is known there" if _is_for_nobody(decision, counts) else ""
    return f"{does}: {_seen(snapshot)}{nobody}."


def _seen(snapshot: Snapshot) -> str:
    """Return the cause in an observation, which follows the colon."""
    decision = snapshot.decision
    if decision.violations:
        return _short(snapshot)
    if decision.is_sloped or snapshot.rules.limit is None:
        return decision.reason
    return within(snapshot.memory, snapshot.rules.required_limit)


def _tone(decision: Decision, counts: ReaderCounts) -> tuple[Tone, str]:
    tone, word = _tone_of(decision.decided, counts)
    if _is_for_nobody(decision.decided, counts):
        tone, word = "part", "Nobody yet"
    if not counts.enforces and _throttles(decision, counts):
        return tone, "Not enforced"
    if decision.shadow is None:
        return tone, word
    return ("free", "Observes") if tone == "free" else ("part", f"Observes: {word.lower()}")


def _tone_of(decision: Decision, counts: ReaderCounts) -> tuple[Tone, str]:
    if decision.factor == 0.0:
        refuses = decision.stop_line_reached and counts.authorizers
        return "stopped", "Stopped" if refuses else "Throttled"
    if decision.factor < 1.0 or _is_near(decision, counts):
        return "part", "Slowed"
    if decision.source is Source.FALLBACK:
        return "blind", "Not read"
    if decision.source is Source.OVERRIDE and decision.violations:
        return "part", "Override"
    if _throttles_some(decision, counts):
        return "part", "Some throttled"
    return "free", "Not throttled"


def _until(snapshot: Snapshot, now: Now) -> list[Until]:
    decision = snapshot.decision
    if decision.source is Source.DISABLED:
        return [Until("Until the sidecar is started with a check interval.")]
    if decision.source is Source.FALLBACK:
        return [Until("Until the volumes are read." if snapshot.rules.limit else _RETURNS)]
    if decision.override is not None:
        return [
            Until(
                "Until an operator ends the override, at the latest at",
                now.moment(decision.override.ends_at),
            )
        ]
    found = _throttled_until(snapshot, now) if decision.violations else _free_until(snapshot, now)
    if decision.valid_until is not None:
        text = "If no more readings come, the fallback applies after"
        found.append(Until(text, now.moment(decision.valid_until)))
    return found


def _to_do(snapshot: Snapshot, counts: ReaderCounts) -> Iterator[ToDo]:
    decision = snapshot.decision
    is_unread = counts.enforcement == "callback" and not counts.readers
    if is_unread and decision.source is not Source.DISABLED:
        text = "Let a broker's quota callback read this sidecar: none has in the last 10 minutes"
        yield ToDo(text, "override")
    is_kept = any(is_over(snapshot.memory, state) for state in decision.violations)
    if decision.source is Source.FALLBACK or is_kept:
        answering = (
            "the brokers report their volumes"
            if snapshot.rules.limit
            else "the factor source works"
        )
        yield ToDo(f"Make sure that {answering}", "brokers")
    elif decision.violations and why_retained(snapshot.memory, worst(decision.violations)):
        text = "Check the broker and the disk of the volume, which can't be read now"
        yield ToDo(text, "brokers")
    elif decision.is_sloped and (held := _held(snapshot)):
        broker_id, log_dir = held.volume.place
        text = f"Check broker {broker_id}: the last reading of its {log_dir} slows producers"
        if not held.online or broker_id not in snapshot.memory.active:
            text += f". If it does not come back: throttle-sidecar forget {broker_id}"
        yield ToDo(text if held.online else f"{text} --log-dir {quote(log_dir)}", "brokers")
    elif decision.violations:
        text = "Free space: the largest topics there, and commands that shrink them"
        yield ToDo(text, "contents-1")


def _held(snapshot: Snapshot) -> VolumeState | None:
    """Return the volume that decides on the factor on its slope, if its reading is old."""
    low = low_volumes(snapshot.memory, snapshot.rules)
    return low[0] if low and why_retained(snapshot.memory, low[0]) else None


def _throttled_until(snapshot: Snapshot, now: Now) -> list[Until]:
    decision, limit = snapshot.decision, snapshot.rules.required_limit
    if expiry := _expiry(snapshot, decision.violations, now):
        return [expiry]
    ends = [
        None if why_retained(snapshot.memory, state) else _released_at(state, limit.released)
        for state in decision.violations
    ]
    known_ends = [at for at in ends if at is not None]
    volumes = "volume that violates the limit" if limit.release_margin else "volume"
    text = f"Until every {volumes} has {limit.released.within()}"
    if len(known_ends) < len(ends):
        return [Until(f"{text}.")]
    return [Until(f"{text}: at the rate at which they empty,", now.moment(max(known_ends)))]


def _expiry(snapshot: Snapshot, states: Sequence[VolumeState], now: Now) -> Until | None:
    """When the readings of brokers that left expire; None if other readings count too."""
    memory, validity_s = snapshot.memory, snapshot.rules.validity_s
    ends = [memory.expires_at(state.volume.broker_id, validity_s) for state in states]
    known = [at for at in ends if at is not None]
    if not known or len(known) < len(ends):
        return None
    text = "Until the last readings of brokers that have left the cluster expire, at about"
    return Until(text, now.moment(max(known)))


def _released_at(state: VolumeState, limit: Limit) -> float | None:
    rate = state.fill.bytes_per_second
    missing = limit.judge(state.volume).threshold_bytes - state.volume.available_bytes
    left_s = seconds_to(max(missing, 1.0), None if rate is None else -rate)
    return None if left_s is None else state.read_at + left_s


def _free_until(snapshot: Snapshot, now: Now) -> list[Until]:
    if snapshot.rules.limit is None:
        return [Until(_RETURNS)]
    at = limit_reached_at(snapshot)
    if snapshot.decision.is_sloped and (held := _held(snapshot)):
        expiry = _expiry(snapshot, [held], now)
        return [expiry or Until("Until the volume is read again, or an operator forgets it.")]
    if snapshot.decision.is_sloped and at is None:
        return [Until("The factor follows the space on the volumes.")]
    if at is None:
        text = "None fills so fast now that it would within ten years."
        return [Until(f"Until a volume reaches its limit. {text}")]
    text = "Until a volume reaches its limit: at the rate at which they fill,"
    return [Until(text, now.moment(max(at, now.now)))]
