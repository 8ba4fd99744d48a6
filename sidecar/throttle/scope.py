"""The scope of a throttle: all producers, or only those that write to topics on the full volumes.

With ``SIDECAR_THROTTLE_SCOPE=volume`` a throttle applies only to clients that write to topics with
a replica on a volume that throttles. A replica that is being moved there counts too. While a volume
violates the limit, volumes that are only below the soft limit do not count. If the contents of a
volume can't be read, or there are too many topics, all clients are throttled.

The sidecar asks the broker of a log dir for its contents from two minutes before the volume is
expected to reach its limit. The answer counts for the validity, and while the log dir is offline or
its broker is fenced.

Example: /d1 of broker 3 violates and has partitions of "orders" and "clicks". Clients that write to
one of these topics are throttled, wherever the leaders of its partitions are.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.throttle.memory import BrokerState, Computed, Contents, Memory, VolumeState
from sidecar.throttle.validity import is_valid
from sidecar.volumes import LogDir

MOST_TOPICS: Final = 2000
MOST_CHARACTERS: Final = 64_000
"""The characters of all names together, which each answer to a callback carries."""

UNREAD_S: Final = 1.0
"""How long a volume at its limit may throttle nobody while its contents are read. Without this
delay, a client that does not write to the volume could wait for up to four seconds."""

NEAR_S: Final = 120.0
"""Contents are read when a volume is expected at its limit within this time."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The clients that a throttle is for.

    Attributes:
        topics: the topics whose writers are throttled, sorted; None for all clients.
        why: why all clients are in scope, or why some topics are missing; "" when ``topics`` is
            complete.
        until: the last moment at which this scope is valid without news, steady seconds; None when
            only news ends it.
    """

    topics: tuple[str, ...] | None
    why: str = ""
    until: float | None = None


ALL: Final = Scope(None)
"""All clients, as the settings say."""


def scope_of(memory: Memory, computed: Computed, validity_s: float, now: float) -> Scope:
    """The scope at ``now``, steady seconds.

    Args:
        memory: with the contents of volumes.
        computed: the factor, which is below 1.0; without violations it is on its slope.
        validity_s: for how long a reading counts, seconds.
        now: steady seconds.
    """
    keys = _throttling(memory, computed)
    topics: set[str] = set()
    unread_since: list[float] = []
    why = ""
    for place in keys:
        broker_id, log_dir = place
        if place in memory.contents and _counts(memory, place, validity_s, now):
            topics |= memory.contents[place].topics
            continue
        # The contents are unknown. For a moment nobody is throttled while they are read. After that
        # moment, or when the stop line is reached, all clients are in scope: a throttle that may
        # miss the right client protects no disk.
        where = f"the topics on broker {broker_id} {log_dir} are"
        since = memory.unread.get(place)
        if since is None or computed.at_stop_line or not is_valid(since, UNREAD_S, now):
            return Scope(None, f"{where} not known")
        unread_since.append(since)
        why = f"{where} being read"
    if not keys:
        return Scope(None, "the topics on the volumes are not known")
    # Each answer to a callback has all names. Too many would delay every answer.
    if len(topics) > MOST_TOPICS:
        return Scope(
            None, f"there are {len(topics):,} topics, more than the maximum of {MOST_TOPICS:,}"
        )
    characters = sum(map(len, topics))
    if characters > MOST_CHARACTERS:
        return Scope(
            None, f"the names of {len(topics):,} topics are too long: {characters:,} characters"
        )
    until = min(unread_since) + UNREAD_S if unread_since else None
    return Scope(tuple(sorted(topics)), why, until)


def unread(before: Memory, memory: Memory, validity_s: float, now: float) -> dict[LogDir, float]:
    """The volumes that throttle and were not read yet, with the time since then, steady seconds.

    A volume that may have throttled before is left out. Releasing its clients while it is read
    would do more harm than throttling other clients for a moment.

    Args:
        before: the memory before an observation.
        memory: after it.
        validity_s: for how long a computed factor counts, seconds.
        now: of the observation, steady seconds.
    """
    earlier = before.computed
    # At a start it is unknown which clients were throttled before, so none is released.
    if memory.computed is None or earlier is None:
        return {}
    is_known = is_valid(earlier.computed_at, validity_s, now)
    throttled = set(_throttling(before, earlier))
    return {
        key: before.unread.get(key, now)
        for key in _throttling(memory, memory.computed)
        if key not in memory.contents
        and (key in before.unread or (is_known and key not in throttled))
    }


def brokers_to_read(memory: Memory, now: float) -> frozenset[int]:
    """The active brokers with a volume that throttles or soon will, at ``now`` (steady seconds)."""
    # Contents that are read only at the limit come late: until then nobody is throttled, and after
    # a second everyone.
    sloped = {broker_id for broker_id, _ in _on_slope(memory)}
    return frozenset(
        state.volume.broker_id
        for state in memory.volumes()
        if state.volume.broker_id in memory.active
        and (state.volume.broker_id in sloped or _is_near(state, now))
    )


def with_contents(
    memory: Memory,
    read: Mapping[int, Mapping[str, Collection[str]]],
    kept: Collection[int],
    now: float,
) -> dict[LogDir, Contents]:
    """The known contents after some brokers were read.

    Args:
        memory: with the contents before.
        read: broker id -> log dir -> topics, for the brokers that answered.
        kept: the brokers whose contents stay known; those of other brokers are dropped.
        now: when they were asked, steady seconds.
    """
    # An answer replaces what is known, since a log dir may have lost its topics. But it lacks log
    # dirs that are offline, perhaps since the last poll.
    known = {state.volume.place for state in memory.volumes()}
    left = {
        key: old
        for key, old in memory.contents.items()
        if key[0] in kept and (key[0] not in read or key in known)
    }
    for broker_id, log_dirs in read.items():
        for log_dir, topics in log_dirs.items():
            left[broker_id, log_dir] = Contents(frozenset(topics), now)
    return left


def _throttling(memory: Memory, computed: Computed) -> list[LogDir]:
    """The volumes that make the factor lower than 1.0."""
    if computed.factor == 1.0:
        return []
    # While a volume violates, those on the slope are left out: the factor is 0.0 because of the
    # violation, and their clients alone would have a higher one.
    return [state.volume.place for state in computed.violations] or _on_slope(memory)


def _on_slope(memory: Memory) -> list[LogDir]:
    """The volumes on the slope; after all have left it, the volumes with known contents."""
    if memory.slope is None:
        return []
    return sorted(memory.slope.learned) or sorted(memory.contents)


def _counts(memory: Memory, place: LogDir, validity_s: float, now: float) -> bool:
    broker_id, log_dir = place
    broker = memory.brokers.get(broker_id, BrokerState())
    # No client can write to a fenced broker or to an offline log dir. So the contents don't change
    # and count without an end.
    is_offline = any(each.log_dir == log_dir and not each.is_written for each in broker.offline)
    is_still = broker.retained or is_offline
    return is_still or is_valid(memory.contents[place].read_at, validity_s, now)


def _is_near(state: VolumeState, now: float) -> bool:
    seconds_left = state.seconds_left
    if state.violates:
        return True
    return seconds_left is not None and seconds_left - (now - state.read_at) <= NEAR_S
