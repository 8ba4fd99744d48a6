"""The decision: which factor applies, why, and until when without news (proposal 047).

Order of authority: disabled, the override while it lasts, the newest valid computed factor, the
fallback. A failed poll keeps the computed factor while now <= computed_at + validity; after that
the fallback applies.

In observe mode all this is decided and published, but nobody is throttled: the factor is 1.0.

Example (the proposal's own): validity 2 min, fallback 0.0. Minute 0 computes 1.0. Minutes 1 and 2
fail: 1.0, since 2 <= 0 + 2. Minute 3 fails: 0.0. Minute 4 computes 1.0.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sidecar.throttle import reason
from sidecar.throttle.fold import all_failed, fail, fold_in, forget, other_cluster, take_over
from sidecar.throttle.memory import (
    BudgetThrottle,
    Computed,
    Memory,
    Override,
    Slope,
    VolumeState,
)
from sidecar.throttle.rules import NO_RULES, Rules
from sidecar.throttle.scope import ALL, scope_of, unread
from sidecar.throttle.slope import next_slope
from sidecar.throttle.stop_line import volumes_at_stop_line
from sidecar.throttle.user_throttles import UserThrottle, current_throttles
from sidecar.throttle.validity import is_valid
from sidecar.volumes import Failure, FailureKind, Observation


class Source(StrEnum):
    """The source of the factor that applies."""

    OBSERVATION = "observation"
    FALLBACK = "fallback"
    OVERRIDE = "override"
    DISABLED = "disabled"
    SHADOW = "shadow"


@dataclass(frozen=True, slots=True)
class Decision:
    """The factor that applies, and why.

    Attributes:
        factor: 0.0 to 1.0; produce quotas are multiplied by it.
        source: its source.
        reason: one sentence for a person, with the numbers.
        violations: the volumes at or below the limit when the newest valid factor was computed. An
            override does not hide them.
        at_stop_line: the violating volumes that count as at the stop line at that time. An override
            does not hide them either.
        computed_at: when the newest valid factor was computed, steady seconds; None without one.
        valid_until: the last moment at which this decision is valid without news, steady seconds;
            None when only news ends it.
        override: the operator's factor, while it applies.
        user_throttles: user name -> the throttle of that user, besides the factor for all.
        shadow: the decision that would apply in enforce mode; None when this one applies.
        is_sloped: whether the factor is on its slope, where it moves without a new decision.
        topics: the throttle applies to clients that write to one of these topics, sorted; None if
            it applies to all clients.
        is_of_volumes: whether the settings request a throttle by topics, even while nobody is
            throttled or the topics are unknown.
        budgets: owner -> the throttle of clients that write to its topics, besides the factor for
            all; the stricter of the two applies.
        budgets_until: the last moment at which ``budgets`` is valid without news, steady seconds;
            None when only news ends it.
    """

    factor: float
    source: Source
    reason: str
    violations: tuple[VolumeState, ...] = ()
    at_stop_line: tuple[VolumeState, ...] = ()
    computed_at: float | None = None
    valid_until: float | None = None
    override: Override | None = None
    user_throttles: Mapping[str, UserThrottle] = field(default_factory=dict)
    shadow: "Decision | None" = None
    is_sloped: bool = False
    topics: tuple[str, ...] | None = None
    is_of_volumes: bool = False
    budgets: Mapping[str, BudgetThrottle] = field(default_factory=dict)
    budgets_until: float | None = None

    @property
    def decided(self) -> "Decision":
        """The decision of enforce mode, whether it applies or not."""
        return self.shadow or self

    @property
    def stop_line_reached(self) -> bool:
        """Whether brokers refuse all producers except excluded principals.

        Only an observation can cause that, never a fallback or an override.
        """
        return self.source is Source.OBSERVATION and bool(self.at_stop_line)

    @property
    def users(self) -> Mapping[str, float]:
        """User name -> the factor for that user's quotas, besides the factor for all.

        The stricter of the two applies, whatever the source of the factor for all is.
        """
        return dict.fromkeys(self.user_throttles, 0.0)

    @property
    def changes_after(self) -> float | None:
        """The last moment at which the whole decision is valid without news, steady seconds."""
        ends = (each.ends_at for each in self.decided.user_throttles.values())
        return _first_of(self.valid_until, self.decided.budgets_until, *ends)


def _first_of(*moments: float | None) -> float | None:
    return min((at for at in moments if at is not None), default=None)


@dataclass(frozen=True, slots=True)
class Disabled:
    """The decider of a sidecar with check interval PT0S: 1.0, whatever else is set.

    Attributes:
        rules: the rules, which are published but judge no volume.
    """

    rules: Rules = NO_RULES

    def decide(self, memory: Memory, now: float) -> Decision:  # noqa: ARG002 - each decider's
        """Return factor 1.0."""
        return Decision(1.0, Source.DISABLED, reason.DISABLED)

    def fold(self, memory: Memory, observation: Observation) -> Memory:  # noqa: ARG002
        """Return the memory unchanged, since nothing is polled."""
        return memory

    def forget(self, memory: Memory, broker_id: int, log_dir: str | None = None) -> Memory:  # noqa: ARG002
        """Return the memory unchanged, since nothing was read."""
        return memory

    def take_over(self, past: Memory, memory: Memory, seen: Collection[int]) -> Memory:  # noqa: ARG002
        """Return the memory unchanged, since nothing is stored."""
        return memory


@dataclass(frozen=True, slots=True)
class VolumeLimit:
    """The decider of proposal 047: one limit for every volume of the cluster.

    Attributes:
        rules: the limit with the other lines, and the validity. Without a limit, the factor of a
            factor source applies (``Board.take_factor``), and no volume is judged.
        fallback: the factor that applies without a valid computed one, 0.0 to 1.0.
        is_enforced: whether the decision applies, and so has an effect on how volumes fill. It does
            not in observe mode and in a replay.
        is_of_volumes: whether a throttle is only for clients that write to topics on the volumes
            that throttle (``sidecar.throttle.scope``).
    """

    rules: Rules
    fallback: float
    is_enforced: bool = True
    is_of_volumes: bool = False

    def decide(self, memory: Memory, now: float) -> Decision:
        """The decision, which in observe mode has factor 1.0 and that of enforce mode beside it."""
        enforced = self._decide_enforced(memory, now)
        if self.is_enforced:
            return enforced
        return Decision(
            1.0,
            Source.SHADOW,
            reason.shadowed(enforced.factor, enforced.reason),
            enforced.violations,
            enforced.at_stop_line,
            enforced.computed_at,
            enforced.valid_until,
            shadow=enforced,
        )

    def _decide_enforced(self, memory: Memory, now: float) -> Decision:
        """The decision by the order of authority, with the throttles of single users."""
        decision = self._decide(memory, now)
        if self.is_of_volumes:
            decision = replace(decision, is_of_volumes=True)
        if memory.budgets:
            # A budget is independent of every volume, and so of the source of the factor for all.
            budgets = {
                owner: each
                for owner, each in memory.budgets.items()
                if self._is_valid(each.at, now)
            }
            until = _first_of(*(each.at + self.rules.validity_s for each in budgets.values()))
            decision = replace(decision, budgets=budgets, budgets_until=until)
        if not memory.user_throttles:
            return decision
        return replace(decision, user_throttles=current_throttles(memory.user_throttles, now))

    def _decide(self, memory: Memory, now: float) -> Decision:
        computed = memory.computed
        # No event removes an expired factor from the memory, so its validity is checked here.
        if computed is not None and not self._is_valid(computed.computed_at, now):
            computed = None
        violations = computed.violations if computed else ()
        at_stop_line = computed.at_stop_line if computed else ()
        computed_at = computed.computed_at if computed else None
        expires_at = None if computed is None else computed.computed_at + self.rules.validity_s
        # First authority: the operator. The violations are published too, so that people see which
        # full volumes the override ignores.
        override = memory.override
        if override is not None and is_valid(override.ends_at, 0.0, now):
            return Decision(
                override.factor,
                Source.OVERRIDE,
                reason.overridden(override, violations),
                violations,
                at_stop_line,
                computed_at,
                # The violations may expire before the override ends, which changes the decision
                # too.
                min(override.ends_at, expires_at)
                if violations and expires_at is not None
                else override.ends_at,
                override,
            )
        limit = self.rules.limit
        if computed is not None and not violations and limit and self.rules.slope is None:
            # The state file may come from a run with a soft limit that is no longer set.
            computed = replace(computed, factor=1.0)
        # Second authority: the newest valid observation.
        if computed is not None:
            # At 0.0 the limit decides, and at 1.0 nobody is slowed. In between, the slope decides.
            is_sloped = self.rules.slope is not None and 0.0 < computed.factor < 1.0
            why = (
                reason.sloped(memory, self.rules)
                if is_sloped
                else reason.observed(memory, violations, limit)
                if limit is not None
                else reason.returned(memory, computed)
            )
            scope = ALL
            if self.is_of_volumes and computed.factor < 1.0:
                scope = scope_of(memory, computed, self.rules.validity_s, now)
            return Decision(
                computed.factor,
                Source.OBSERVATION,
                why
                + reason.stop_line_reached(at_stop_line, self.rules.stop_line)
                + reason.scoped(scope),
                violations,
                at_stop_line,
                computed_at,
                # Contents that are still being read widen the scope when their time is over.
                _first_of(expires_at, scope.until),
                is_sloped=is_sloped,
                topics=scope.topics,
            )
        # Last authority: the fallback. Only an observation ends it, so it has no end.
        return Decision(self.fallback, Source.FALLBACK, reason.fell_back(memory, now))

    def fold(self, memory: Memory, observation: Observation) -> Memory:
        """The memory after an observation, with the factor computed from all that is known then.

        A whole observation renews the validity. A partial one renews it only when it reads a
        violation itself, since the readings of the other brokers are as old as the last whole one.
        A whole observation without a violation, and with a member that is neither seen nor
        remembered, counts as a failed poll.
        """
        other, now = other_cluster(memory, observation), observation.observed_at
        if other is not None:
            return all_failed(memory, other, now)
        previous_memory = memory
        memory = fold_in(memory, observation, self.rules)
        whole = observation.membership is not None
        violations, missing = self._survey(memory, now)
        # One violation suffices for 0.0, so missing brokers don't matter then. A release needs
        # valid readings of all brokers. A partial observation that found nothing is not a failed
        # poll.
        if missing is not None and not violations:
            return fail(memory, missing) if whole else memory
        was_reached = self._was_stop_line_reached(memory.computed, now)
        # The slope compares fill rates with the factor that applied until now, so it needs the
        # previous memory.
        memory = replace(memory, slope=self._slope(previous_memory, memory, now))
        computed = _computed(memory, tuple(violations), memory.computed, was_reached=was_reached)
        if computed is None or not self._is_valid(computed.computed_at, now):
            # The list of brokers that keeps a fenced violation is too old. A factor that was
            # computed later may still be valid.
            return memory
        memory = replace(memory, computed=computed)
        if self.is_of_volumes:
            # A volume that has just reached its limit throttles nobody until its contents are read,
            # a second at most. So no client is throttled that does not write to the volume.
            new = unread(previous_memory, memory, self.rules.validity_s, now)
            memory = replace(memory, unread=new)
        # A partial observation does not show that the whole cluster can be polled again.
        return replace(memory, failed_polls=0, failure=None) if whole else memory

    def _slope(self, before: Memory, memory: Memory, now: float) -> Slope | None:
        if self.rules.slope is None:
            return None
        # In observe mode and in a replay no broker applied the factor, so volumes filled as at 1.0.
        applied = self._decide(before, now).factor if self.is_enforced else 1.0
        volumes = list(memory.volumes_on_slope(self.rules.validity_s, now))
        return next_slope(memory.slope, volumes, self.rules.slope, applied, now)

    def forget(self, memory: Memory, broker_id: int, log_dir: str | None = None) -> Memory:
        """The memory after an operator said that a last reading no longer counts.

        If that reading made the factor 0.0, the factor is computed again at once, as of when the
        other brokers were read. If their readings do not suffice, the fallback applies.

        Args:
            memory: the memory before.
            broker_id: the broker that will not come back.
            log_dir: the path of the only log dir that will not come back; None for all of them.
        """
        memory = forget(memory, broker_id, log_dir)
        before = memory.computed
        if before is None:
            return memory
        # A reading that did not throttle changes nothing now; the next poll is computed without it.
        if not any(
            state.volume.broker_id == broker_id and log_dir in {None, state.volume.log_dir}
            for state in before.violations
        ):
            return memory
        # A partial observation may have read one of the other volumes with room since.
        known = {each.volume.place: each for each in memory.volumes()}
        others = (known.get(state.volume.place) for state in before.violations)
        left = tuple(state for state in others if state is not None and state.violates)
        # Computed as of the previous computation, because forgetting a reading must not renew
        # others.
        _, missing = self._survey(memory, before.computed_at)
        if not left and missing is not None:
            return replace(memory, computed=None)
        computed = _computed(memory, left, None, was_reached=bool(before.at_stop_line))
        return replace(memory, computed=computed)

    def take_over(self, past: Memory, memory: Memory, seen: Collection[int]) -> Memory:
        """The memory with what an earlier run remembered, which was read late.

        The factor is the one that would follow if the state had been read at the start.

        Args:
            past: the memory of the earlier run, with the operator's changes since the start.
            memory: what is known since the start.
            seen: the brokers that have answered since.
        """
        now = memory.membership_at
        memory = take_over(past, memory, seen, self.rules)
        if self.rules.limit is None or now is None:
            return memory
        violations, missing = self._survey(memory, now)
        if missing is not None and not violations:
            return memory
        was_reached = any(
            self._was_stop_line_reached(each, now) for each in (memory.computed, past.computed)
        )
        computed = _computed(memory, tuple(violations), memory.computed, was_reached=was_reached)
        if computed is None or not self._is_valid(computed.computed_at, now):
            return memory
        return replace(memory, computed=computed)

    def _survey(self, memory: Memory, now: float) -> tuple[list[VolumeState], Failure | None]:
        """Return the violating volumes that count now, and why readings are missing, if any are."""
        membership, membership_at = memory.membership, memory.membership_at
        if membership is None or membership_at is None:
            return [], Failure(FailureKind.INCOMPLETE, "the brokers of the cluster are not known")
        violations: list[VolumeState] = []
        unseen = set(membership.active)
        for broker_id in sorted(memory.brokers):
            state = memory.brokers[broker_id]
            # Each broker has its own validity. So a silent broker does not hide the others, and the
            # answers of others do not renew its reading.
            if self._is_valid(state.seen_at, now):
                unseen.discard(broker_id)
            # The violations of a fenced broker count without an end: that broker can't be read, and
            # its disk is still full when it comes back.
            if self._is_valid(state.read_at, now) or state.retained:
                violations += state.violating
        if not membership.active:
            return violations, Failure(FailureKind.INCOMPLETE, "the cluster has no active broker")
        if unseen:
            return violations, Failure(FailureKind.INCOMPLETE, reason.unseen(memory, unseen))
        # An old list may lack a broker that joined since, whose volumes would be missed.
        if not self._is_valid(membership_at, now):
            return violations, Failure(FailureKind.INCOMPLETE, "the list of brokers is too old")
        return violations, None

    def _was_stop_line_reached(self, computed: Computed | None, now: float) -> bool:
        # The stop line's margin only keeps a line reached. A factor that has expired keeps nothing,
        # so a new stop begins at the line itself.
        if computed is None:
            return False
        return bool(computed.at_stop_line) and self._is_valid(computed.computed_at, now)

    def _is_valid(self, at: float | None, now: float) -> bool:
        return is_valid(at, self.rules.validity_s, now)


Decider = VolumeLimit | Disabled
"""The memory after an observation, and the decision that follows from the memory."""


def _computed(
    memory: Memory,
    violations: tuple[VolumeState, ...],
    before: Computed | None,
    *,
    was_reached: bool,
) -> Computed | None:
    """0.0 when a volume violates, else the slope's factor; with the volumes at the stop line."""
    if memory.membership_at is None:
        return None
    on_slope = 1.0 if memory.slope is None else memory.slope.factor
    factor = 0.0 if violations else on_slope
    # A broker that does not answer renews nothing, since proposal 047 counts a computation without
    # all active brokers as failed. So the validity begins with the oldest reading, or with the
    # newest that shows a violation.
    if violations:
        computed_at = max(_shown_at(memory, state) for state in violations)
        # It never goes back while the same volumes violate. A late answer of a broker that was
        # fenced may be older than the last list that kept its violation.
        shown = {state.volume.place for state in violations}
        if (
            before
            and before.violations
            and {each.volume.place for each in before.violations} <= shown
        ):
            computed_at = max(computed_at, before.computed_at)
    else:
        seen = (state.seen_at for state in memory.active_brokers())
        computed_at = min([memory.membership_at, *(at for at in seen if at is not None)])
    return Computed(
        factor, computed_at, violations, volumes_at_stop_line(violations, was_reached=was_reached)
    )


def _shown_at(memory: Memory, state: VolumeState) -> float:
    """When a violation was last shown: by the sizes, or by what keeps them without an end."""
    broker = memory.brokers.get(state.volume.broker_id)
    if broker is None:
        return state.read_at
    if broker.retained and memory.membership_at is not None:
        # The list of brokers still has it as fenced.
        return max(memory.membership_at, state.read_at)
    # Its broker answered again, with this log dir offline.
    return max(state.read_at, broker.read_at or state.read_at)
