"""The claims of docs/reliability.md, judged by a trace alone.

A callback has to throttle when it can know of a violation: of its own volume within a second,
whatever fails; of another volume within the reaction time, if no fault affects the broker of that
volume, the callback's own broker, and a sidecar that the callback asks. It must go on until the
volume has more than the limit and the release margin, and while the broker of the volume is away.

A claim is broken if it does not hold at two moments in a row, since a moment is not an instant: a
volume may have room between two of them.

Example: the volume of broker 1 violates from 30 s on, nothing fails, and the reaction time is 29 s.
Broker 2 still applies 1.0 at 61 and 62 s: broken.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.auditor.bounds import (
    CONNECTIONS_S,
    OWN_S,
    STOP_MARGIN,
    leaked_bytes,
    reaction_s,
    recovery_s,
)
from tests.auditor.trace import BrokerSight, Moment, Setup, Trace

MOMENT_S = 1.0
"""The time between two moments."""
DRAIN_S = 3.0
"""Requests that were on their way when the throttle began are acknowledged by then."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim that does not hold.

    Attributes:
        at_s: when.
        claim: which claim.
        text: what was seen.
    """

    at_s: float
    claim: str
    text: str

    def __str__(self) -> str:
        return f"{self.at_s:.1f} s: {self.claim}: {self.text}"


def audit(trace: Trace) -> list[Finding]:
    """Each broken claim, by time; of each broker the first."""
    auditor = _Auditor(trace)
    for moment in trace.moments:
        auditor.look(moment)
    return sorted(auditor.findings, key=lambda each: each.at_s)


@dataclass(slots=True)
class _Volume:
    """A volume as its broker showed it.

    Attributes:
        reported: the bytes available when its broker last ran.
        violates_at: since when it violates; None while it does not.
        stops_at: since when it is at the stop line; None while it is not.
        held_at: since when it violates, or has not more than the release margin since; None if not.
        is_known: whether its violation was there for so long that sidecars know it.
        is_settled: whether no fault hides it, nor has until a while ago.
        hidden: the least bytes available since faults began that still hide it, or did until a
            while ago; None: none does.
        is_kept: whether its broker was away, or its log dir offline or unreadable meanwhile, so
            that sidecars remember what they saw of it until they see it again.
        least: the least bytes available since some broker could not be read, or some callback had
            no answer; None while there is no such broker or callback.
    """

    reported: int | None = None
    violates_at: float | None = None
    stops_at: float | None = None
    held_at: float | None = None
    is_known: bool = False
    is_settled: bool = False
    hidden: int | None = None
    is_kept: bool = False
    least: int | None = None

    def hide(self, available: int | None, *, is_seen: bool, is_away: bool) -> None:
        """Whether every sidecar can have seen it by now, and whether it is away."""
        if is_seen and not is_away:
            self.hidden, self.is_kept = None, False
            return
        self.hidden = min(
            (each for each in (self.hidden, self.reported, available) if each is not None),
            default=None,
        )
        self.is_kept |= is_away

    def show(self, available: int, setup: Setup, now: float) -> None:
        """Its broker runs, and has it."""
        self.reported = available
        violates = available <= setup.limit_bytes
        stops = setup.stop_bytes is not None and available <= setup.stop_bytes and violates
        is_held = violates or (
            self.held_at is not None and available <= setup.limit_bytes + setup.margin_bytes
        )
        self.violates_at = _since(self.violates_at, now, holds=violates)
        self.stops_at = _since(self.stops_at, now, holds=stops)
        self.held_at = _since(self.held_at, now, holds=is_held)
        self.is_known &= is_held


class _Auditor:
    def __init__(self, trace: Trace) -> None:
        self.findings: list[Finding] = []
        self._setup = trace.setup
        brokers = len(trace.moments[0].brokers) if trace.moments else 0
        self._reaction_s = reaction_s(trace.setup, brokers)
        self._settled_s = CONNECTIONS_S + self._reaction_s
        self._recovery_s = recovery_s(trace.setup, brokers)
        self._volumes: dict[tuple[int, str], _Volume] = {}
        self._last: Moment | None = None
        self._doubts: set[tuple[str, int]] = set()
        self._found: set[tuple[str, int]] = set()
        self._throttles_at: float | None = None
        self._appended = 0.0
        self._unregistered: list[int | None] = []
        self._unregistered_until = 0.0
        self._cause_at = self._stop_cause_at = self._quiet_at = 0.0
        self._unanswered_at: dict[int, float | None] = {}
        self._unread_at: dict[int, float | None] = {}
        self._forecasts_until: dict[int, float] = {}

    def look(self, moment: Moment) -> None:
        """Judges one moment more."""
        self._see(moment)
        doubts = {
            (claim, number): text
            for number, sight in moment.brokers.items()
            for claim, text in self._doubtful(moment, number, sight)
        }
        for (claim, number), text in doubts.items():
            if (claim, number) in self._doubts and (claim, number) not in self._found:
                self._found.add((claim, number))
                self.findings.append(Finding(moment.at_s, claim, text))
        self._doubts = set(doubts)
        self._pauses(moment)
        if self._setup.is_bounded:
            self._appends(moment)
        self._last = moment

    def _see(self, moment: Moment) -> None:
        setup, now = self._setup, moment.at_s
        all_look = all(self._is_settled(each) for each in moment.sidecars.values())
        for number, sight in moment.brokers.items():
            for log_dir, shown in sight.volumes.items():
                volume = self._volumes.setdefault((number, log_dir), _Volume())
                is_settled = self._is_settled(sight.quiet_s) and self._is_settled(shown.quiet_s)
                volume.is_settled = is_settled and shown.available is not None
                is_away = sight.up_s is None or shown.available is None or shown.is_unreadable
                volume.hide(shown.available, is_seen=is_settled and all_look, is_away=is_away)
                if sight.up_s is None or shown.available is None:
                    # Nothing is written there, and sidecars remember what was shown.
                    volume.violates_at = volume.stops_at = None
                else:
                    # A sidecar may have seen room that was there only between two moments.
                    volume.show(max(shown.available, shown.most or 0), setup, now)
                    volume.show(shown.available, setup, now)
                if volume.is_settled and self._is_due(volume.violates_at, now, self._reaction_s):
                    volume.is_known = True
        if now > self._unregistered_until:
            self._unregistered.clear()
        if self._last is not None and len(moment.gone) < len(self._last.gone):
            # A list may be out of date, so what an unregistered id showed counts for the validity.
            self._unregistered_until = now + setup.validity_s + self._reaction_s
            self._unregistered += self._last.gone
        volumes = self._volumes.values()
        kept = (each.hidden for each in volumes if each.is_kept)
        reported = [*(each.reported for each in volumes), *kept, *moment.gone, *self._unregistered]
        if any(each is None or each <= setup.room_bytes for each in reported) or any(
            sight.overridden for sight in moment.brokers.values()
        ):
            self._cause_at = now
        near = STOP_MARGIN * (setup.stop_bytes or 0)
        if any(each is None or each <= near for each in reported):
            self._stop_cause_at = now
        quiet = [*(each.quiet_s for each in moment.brokers.values()), *moment.sidecars.values()]
        is_seen = all(each.is_settled for each in self._volumes.values())
        if not is_seen or not all(self._is_settled(each) for each in quiet):
            self._quiet_at = now
        self._forecast(moment)

    def _forecast(self, moment: Moment) -> None:
        """A callback without answers throttles once the last one's forecast is a full volume.

        That counts from the last reading, which may be older than the last answer.
        """
        setup, now = self._setup, moment.at_s
        for number, sight in moment.brokers.items():
            is_reached = _is_reached(sight.quiet_s)
            self._unread_at[number] = _since(self._unread_at.get(number), now, holds=not is_reached)
            answers = is_reached and any(_is_reached(each) for each in self._asked(moment, number))
            self._unanswered_at[number] = _since(
                self._unanswered_at.get(number), now, holds=not answers
            )
        unread = [at_s for at_s in self._unread_at.values() if at_s is not None]
        unanswered = [at_s for at_s in self._unanswered_at.values() if at_s is not None]
        for volume in self._volumes.values():
            shown = [each for each in (volume.least, volume.reported) if each is not None]
            volume.least = min(shown, default=None) if unread or unanswered else None
        room_bytes = min(
            (
                each.least - setup.room_bytes
                for each in self._volumes.values()
                if each.least is not None
            ),
            default=0,
        )
        for number, at_s in self._unanswered_at.items():
            if at_s is None or now - at_s > setup.validity_s:
                continue
            if room_bytes <= setup.most_bytes_per_s * (now - min([at_s, *unread])):
                self._forecasts_until[number] = now + self._recovery_s

    def _doubtful(
        self, moment: Moment, number: int, sight: BrokerSight
    ) -> Iterator[tuple[str, str]]:
        if sight.up_s is None or sight.factor is None or sight.overridden:
            return
        if sight.factor > 0.0:
            for (other, _), volume in self._volumes.items():
                why = self._must_throttle(moment, number, other, volume)
                if why:
                    yield (
                        "a violation that a callback can know of throttles",
                        f"broker {number} applies {sight.factor:g}, but {why}",
                    )
        if sight.stops is False:
            for (other, _), volume in self._volumes.items():
                if self._must_know(moment, number, other, volume, volume.stops_at):
                    yield (
                        "the stop line refuses",
                        f"broker {number} admits, but {self._since(moment, other, volume.stops_at)}"
                        " at the stop line",
                    )
        yield from self._without_cause(moment, number, sight)

    def _must_throttle(self, moment: Moment, number: int, other: int, volume: _Volume) -> str:
        """Why a broker has to throttle because of a volume; "" if it need not."""
        if self._must_know(moment, number, other, volume, volume.violates_at):
            return f"{self._since(moment, other, volume.violates_at)} at the limit"
        if not volume.is_known or volume.held_at is None:
            return ""
        # A sidecar that has run since before the violation remembers it.
        held_s = moment.at_s - volume.held_at
        if not self._is_settled(moment.brokers[number].quiet_s) or not any(
            quiet_s is not None and quiet_s >= held_s + self._settled_s
            for quiet_s in self._asked(moment, number)
        ):
            return ""
        if moment.brokers[other].up_s is None:
            return f"broker {other} is away, and a volume of it was at the limit"
        has_margin = self._setup.margin_bytes > 0 and volume.is_settled
        return f"a volume of broker {other} has not the release margin" if has_margin else ""

    def _must_know(
        self, moment: Moment, number: int, other: int, volume: _Volume, since: float | None
    ) -> bool:
        """Whether a callback has to know what has been so of a volume since then."""
        sight = moment.brokers[number]
        if number == other:
            up_at = moment.at_s - (sight.up_s or 0.0)
            return since is not None and self._is_due(max(since, up_at), moment.at_s, OWN_S)
        return (
            self._is_due(since, moment.at_s, self._reaction_s)
            and volume.is_settled
            and self._is_settled(sight.quiet_s)
            and any(self._is_settled(each) for each in self._asked(moment, number))
        )

    def _without_cause(
        self, moment: Moment, number: int, sight: BrokerSight
    ) -> Iterator[tuple[str, str]]:
        for is_so, what, cause_at in (
            (sight.factor is not None and sight.factor < 1.0, "throttles", self._cause_at),
            (sight.stops is True, "refuses", self._stop_cause_at),
        ):
            longest_s = self._setup.validity_s + self._recovery_s
            if what == "throttles" and moment.at_s <= self._forecasts_until.get(number, 0.0):
                continue
            if is_so and (
                moment.at_s - cause_at > longest_s
                or moment.at_s - max(cause_at, self._quiet_at) > self._recovery_s
            ):
                yield (
                    "nothing is throttled without a cause",
                    f"broker {number} {what}, {moment.at_s - cause_at:.0f} s after the last cause",
                )

    def _pauses(self, moment: Moment) -> None:
        """A broker reports the longest pause since its start, so growth is judged."""
        for number, sight in moment.brokers.items():
            last = None if self._last is None else self._last.brokers.get(number)
            if last is None or last.up_s is None or sight.up_s is None:
                continue
            is_longer = sight.longest_pause_s > last.longest_pause_s
            in_emergency = sight.emergency or last.emergency
            allowed_s = self._setup.emergency_pause_s if in_emergency else self._setup.pause_s
            # Kafka counts from the arrival of the request, and a busy machine is late.
            if is_longer and sight.longest_pause_s > allowed_s + MOMENT_S:
                text = f"broker {number}: {sight.longest_pause_s:.1f} s, {allowed_s:g} s may be"
                self.findings.append(Finding(moment.at_s, "no client waits longer", text))

    def _appends(self, moment: Moment) -> None:
        """While all brokers throttle, little lands."""
        running = {key: each for key, each in moment.brokers.items() if each.up_s is not None}
        last = self._last
        same = last is not None and running.keys() == {
            key for key, each in last.brokers.items() if each.up_s is not None
        }
        throttles = all(each.factor == 0.0 and not each.overridden for each in running.values())
        if not (same and running and throttles):
            self._throttles_at = None
            return
        if self._throttles_at is None:
            self._throttles_at, self._appended = moment.at_s, moment.appended_bytes
        for_s = moment.at_s - self._throttles_at
        if for_s <= DRAIN_S:
            self._appended = moment.appended_bytes
            return
        landed = moment.appended_bytes - self._appended
        allowed = leaked_bytes(self._setup, for_s)
        if landed > allowed and ("appends", 0) not in self._found:
            self._found.add(("appends", 0))
            text = f"{landed / 1e6:.1f} MB in {for_s:.0f} s, {allowed / 1e6:.1f} MB may be"
            self.findings.append(
                Finding(moment.at_s, "little is appended while all throttle", text)
            )

    def _asked(self, moment: Moment, number: int) -> list[float | None]:
        """For how long no fault has touched the sidecars that a callback asks."""
        if self._setup.asks_all:
            return [*moment.sidecars.values()]
        return [moment.sidecars.get(number)]

    def _is_settled(self, quiet_s: float | None) -> bool:
        return quiet_s is not None and quiet_s >= self._settled_s

    def _is_due(self, since: float | None, now: float, within_s: float) -> bool:
        return since is not None and now - since > within_s + MOMENT_S

    def _since(self, moment: Moment, number: int, since: float | None) -> str:
        for_s = moment.at_s - (moment.at_s if since is None else since)
        return f"a volume of broker {number} has been for {for_s:.0f} s"


def _is_reached(quiet_s: float | None) -> bool:
    """Whether no fault has touched it for as long as connections need."""
    return quiet_s is not None and quiet_s >= CONNECTIONS_S


def _since(since: float | None, now: float, *, holds: bool) -> float | None:
    """Since when something holds; None while it does not."""
    if not holds:
        return None
    return now if since is None else since
