"""The sentence with the reason of a decision, for the log, the API and the status page.

Example: "broker 2 /data/d1 has 38.2 MB of 64.0 MB available (59.7 %), at or below the limit of
40.0 MB".
"""

from collections.abc import Collection, Sequence

from sidecar.throttle.limits import Limit
from sidecar.throttle.memory import Computed, Memory, Override, VolumeState
from sidecar.throttle.rules import Rules
from sidecar.throttle.scope import Scope

DISABLED = "disabled: the check interval is PT0S, so nothing is polled and nobody is throttled"

_NAMED = 3
"""The most brokers or volumes that a sentence names; the others are only counted."""


def observed(memory: Memory, violations: Sequence[VolumeState], limit: Limit) -> str:
    """The reason of a computed factor of 0.0 or 1.0."""
    if not violations:
        volumes = sum(len(broker.volumes) for broker in memory.brokers.values())
        brokers = len(memory.membership.active) if memory.membership else 0
        known = f" ({_count(volumes, 'volume')}, {_count(brokers, 'broker')})"
        return within(memory, limit, known)
    # The sentence has room for one volume: the fullest one, which people would look at first.
    worst = min(violations, key=lambda state: state.volume.available_ratio)
    volume = worst.volume
    retained = why_retained(memory, worst)
    more = f"; {len(violations)} volumes violate it" if len(violations) > 1 else ""
    return (
        f"broker {volume.broker_id} {volume.log_dir} {limit.sentence(volume)}"
        f"{retained}{limit.caveat(volume)}{more}"
    )


def within(memory: Memory, limit: Limit, known: str = "") -> str:
    """Say that no volume violates, and which readings are old.

    Args:
        memory: the memory, without a violating volume.
        limit: the limit.
        known: the numbers of volumes and brokers, which follow the limit.
    """
    if memory.failure is not None:
        # The last poll saw too little to compute a factor, so nothing is known of now.
        why = memory.failure.message
        return f"every volume had {limit.within()} when last read, and the last poll failed: {why}"
    silent = [
        broker_id
        for broker_id in sorted(memory.active)
        if (state := memory.brokers.get(broker_id)) is not None and state.is_silent
    ]
    if silent and len(silent) == len(memory.active):
        return f"every volume had {limit.within()} when last read{known}, and no broker answers"
    unread = sum(
        not state.online
        for broker_id in memory.active.keys() - set(silent)
        if (broker := memory.brokers.get(broker_id)) is not None
        for state in broker.volumes
    )
    old = [f"of {brokers_named(silent)}"] if silent else []
    old += [f"of {_count(unread, 'unreadable log dir')}"] if unread else []
    when = f"; those {' and '.join(old)} when last read" if old else ""
    return f"every volume has {limit.within()}{known}{when}"


def returned(memory: Memory, computed: Computed) -> str:
    """The reason of a factor that a factor source returned."""
    why = f", and its last call failed: {memory.failure.message}" if memory.failure else ""
    return f"the factor source returned {computed.factor:g}{why}"


def sloped(memory: Memory, rules: Rules) -> str:
    """The reason of a factor on the slope."""
    limit, soft_limit = rules.required_limit, rules.soft_limit or rules.required_limit
    below = low_volumes(memory, rules)
    if not below:
        rises = "the factor rises to 1.0 a minute after it began to fall"
        return f"{within(memory, soft_limit)}; {rises}"
    nearest = below[0]
    volume = nearest.volume
    retained = why_retained(memory, nearest)
    then = (
        "the factor follows that reading until it expires"
        if memory.expires_at(volume.broker_id, rules.validity_s) is not None
        else "the factor follows that reading until the volume is read again or forgotten"
        if retained
        else f"the factor falls until the limit of {limit.describe()}"
    )
    more = f"; {len(below)} volumes violate it" if len(below) > 1 else ""
    return (
        f"broker {volume.broker_id} {volume.log_dir} {soft_limit.sentence(volume, 'soft limit')}"
        f"{retained}: {then}{more}"
    )


def low_volumes(memory: Memory, rules: Rules) -> list[VolumeState]:
    """The volumes at or below the soft limit, the nearest to the limit first."""
    soft_limit = rules.soft_limit
    low = [
        state
        for state in memory.volumes()
        if soft_limit is not None and soft_limit.judge(state.volume).violates
    ]
    return sorted(low, key=lambda state: state.headroom_bytes)


def stop_line_reached(volumes: Sequence[VolumeState], stop_line: Limit | None) -> str:
    """The end of a reason while the stop line is reached; "" otherwise."""
    if not volumes or stop_line is None:
        return ""
    line = stop_line.describe()
    below = sum(state.is_at_stop_line for state in volumes)
    # The line is still reached, although every volume is above it: the margin keeps it.
    if not below:
        are = f"{_count(len(volumes), 'volume')} {'is' if len(volumes) == 1 else 'are'}"
        return f"; {are} not yet above the stop line of {line} by a tenth"
    return f"; {_violate(below)} the stop line of {line}"


def scoped(scope: Scope) -> str:
    """The end of a reason with the clients in scope; "" for all clients by the settings."""
    if scope.topics is None:
        return f"; for all clients, since {scope.why}" if scope.why else ""
    if not scope.topics and scope.why:
        return f"; for nobody yet, since {scope.why}"
    if not scope.topics:
        return "; for nobody, since no topic is there"
    names = ", ".join(scope.topics[:_NAMED])
    more = f" and {len(scope.topics) - _NAMED:,} more" if len(scope.topics) > _NAMED else ""
    also = f", and {scope.why}" if scope.why else ""
    return f"; for clients that write to {names}{more}{also}"


def overridden(override: Override, violations: Sequence[VolumeState]) -> str:
    """The author and the reason of an override, and how many violations the override hides."""
    hides = f" (while {_violate(len(violations))} the limit)" if violations else ""
    by = f" ({override.by})" if override.by else ""
    return f"set by an operator{by}: {override.reason}{hides}"


def shadowed(factor: float, why: str) -> str:
    """The reason of factor 1.0 in observe mode."""
    return f"only observed (SIDECAR_MODE=observe): the factor would be {factor}: {why}"


def fell_back(memory: Memory, now: float) -> str:
    """The reason of the fallback."""
    why = f": {memory.failure.message}" if memory.failure else ""
    if memory.computed is None:
        return f"{unknown(memory) or 'no observation yet'}{why}"
    age = now - memory.computed.computed_at
    return f"the last valid observation is {age:.0f} s old{why}"


def unknown(memory: Memory) -> str:
    """Say that only some volumes were read; "" if none was."""
    is_read = any(broker.read_at is not None for broker in memory.brokers.values())
    return "not every volume of the cluster is known" if is_read else ""


def unseen(memory: Memory, broker_ids: Collection[int]) -> str:
    """Name the active brokers that have no valid reading, with the reasons."""
    # Brokers that failed alike share one phrase, or a large cluster would make an endless sentence.
    alike: dict[str, list[int]] = {}
    for broker_id in sorted(broker_ids):
        state = memory.brokers.get(broker_id)
        failure = state.failure if state else None
        address = memory.active.get(broker_id)
        why = without_broker(failure.message, broker_id, address) if failure else "not asked"
        alike.setdefault(why, []).append(broker_id)
    groups = list(alike.items())
    texts = [f"{brokers_named(ids)} ({why})" for why, ids in groups[:_NAMED]]
    more = sum(len(ids) for _, ids in groups[_NAMED:])
    rest = f" and {more} more" if more else ""
    return f"neither seen nor remembered: {', '.join(texts)}{rest}"


def without_broker(message: str, broker_id: int, address: str | None) -> str:
    """A failure's message without its broker's name, so that equal failures have equal texts."""
    names = (f"broker {broker_id}: ", f"{address}: ")
    return next((message.removeprefix(name) for name in names if message.startswith(name)), message)


def brokers_named(ids: Sequence[int]) -> str:
    """Name the first brokers, and count the others: "brokers 1, 2, 3 and 4 more"."""
    named = ", ".join(map(str, ids[:_NAMED]))
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"broker{'s' if len(ids) > 1 else ''} {named}{more}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _violate(number: int) -> str:
    return f"{_count(number, 'volume')} {'violates' if number == 1 else 'violate'}"


def why_retained(memory: Memory, state: VolumeState) -> str:
    """The reason why an old reading counts (" when last read, and ..."); "" for a new reading."""
    volume, broker_id = state.volume, state.volume.broker_id
    membership, broker = memory.membership, memory.brokers.get(broker_id)
    if is_over(memory, state):
        has = "has more space" if _now(memory, state) else "is gone"
        return (
            f" when the factor was computed (the volume {has} now, but a release needs readings of "
            "every broker)"
        )
    if membership is not None and broker_id not in membership.active:
        is_fenced = broker_id in (membership.fenced or ())
        return " when last read, and the broker is " + ("fenced" if is_fenced else "gone")
    if not state.online:
        offline = {each.log_dir for each in broker.offline if not each.is_written} if broker else ()
        is_offline = volume.log_dir in offline
        return " when last read, and " + (
            "the log dir is offline" if is_offline else "its sizes can't be read"
        )
    if broker is not None and broker.is_silent:
        return " when last read, and the broker does not answer"
    if memory.failure is not None:
        return " when last read, and the last poll failed"
    return ""


def is_over(memory: Memory, state: VolumeState) -> bool:
    """Whether a violation ended after the factor was computed, which other brokers then kept."""
    now = _now(memory, state)
    return state.violates and (now is None or not now.violates)


def _now(memory: Memory, state: VolumeState) -> VolumeState | None:
    broker = memory.brokers.get(state.volume.broker_id)
    known = () if broker is None else broker.volumes
    return next((each for each in known if each.volume.place == state.volume.place), None)
