"""Storage budgets: how much each owner may use of the disks, and how its writers are slowed.

An owner has topics, by name or by prefix. A topic has one owner: its own name counts more than a
prefix, and a longer prefix more than a shorter one. Between the soft and the hard bytes the factor
of the owner's writers falls as that of a volume between its soft limit and its limit
(``sidecar.throttle.slope``), and further if little is left. At the hard bytes it is 0.0. Below the
soft bytes it is 1.0 at once, so an owner who has freed space does not wait. It does not depend on
any volume.

While a broker is not seen, its last sizes count for the validity. After that the used bytes are
what the others have at least, and the usage names the missing broker.

Example: a budget of 200 MB with 160 MB as its soft bytes. At 130 MB and 6 MB/s the soft bytes are
5 s away, so the owner's topics are read again in 2.5 s. At 170 MB its writers are slowed, and at
200 MB none of their records are taken any more.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from sidecar.throttle.fill import (
    LONGEST_WINDOW_S,
    Fill,
    first_fill,
    next_fill,
    rate_over,
    seconds_to,
)
from sidecar.throttle.limits import MinAvailableBytes, Verdict
from sidecar.throttle.memory import BudgetThrottle, Slope, VolumeState
from sidecar.throttle.sizes import size
from sidecar.throttle.slope import STEP, SlopeRules, next_slope
from sidecar.throttle.topic_sizes import TopicSize
from sidecar.volumes import Volume

FAR_S: Final = 60.0
"""How often topics are read that are far from their soft bytes."""

HARD_S: Final = 2.0
"""How often topics at their hard bytes are read, so that freed space is seen soon."""

BRAKE_S: Final = 10.0
"""How long the rest of a budget has to last at least: several readings, and clients' pauses."""

MOST_CHARACTERS: Final = 1_000_000
"""The characters of the names of all throttled topics, which each broker gets."""

MOST_TOPICS: Final = 100_000
"""The throttled topics. Quota callbacks refuse a document with more of them."""

MOST_OWNERS: Final = 10_000
"""The throttled owners, for the same reason."""

State = Literal["free", "slowed", "paused"]

_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class Budget:
    """What an owner may use.

    Attributes:
        owner: its name.
        hard_bytes: at this size its writers are paused, > 0.
        soft_bytes: from this size on they are slowed, > 0; the hard bytes if they never are.
        topics: its topics by name.
        prefixes: the prefixes of its topics' names, none of them empty.
        counts_replicas: whether each replica counts; otherwise a partition counts once.
        principals: the users that client quotas slow, sorted. Brokers' callbacks go by topics.
    """

    owner: str
    hard_bytes: int
    soft_bytes: int
    topics: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    counts_replicas: bool = False
    principals: tuple[str, ...] = ()


class Owners:
    """Finds the owner of a topic, in a time that does not grow with the number of owners.

    A topic that was looked up is remembered until it is gone.
    """

    def __init__(self, budgets: Iterable[Budget]) -> None:
        self.budgets: Final = tuple(budgets)
        self._by_name = {topic: each.owner for each in self.budgets for topic in each.topics}
        self._by_prefix = {prefix: each.owner for each in self.budgets for prefix in each.prefixes}
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix}, reverse=True)
        self._known: dict[str, str | None] = {}

    def owner(self, topic: str) -> str | None:
        """The owner of a topic; None if it has none."""
        if topic not in self._known:
            prefixes = (topic[:length] for length in self._lengths if length <= len(topic))
            by_prefix = next((each for each in prefixes if each in self._by_prefix), "")
            self._known[topic] = self._by_name.get(topic) or self._by_prefix.get(by_prefix)
        return self._known[topic]

    def topics(self, sizes: Mapping[str, TopicSize]) -> dict[str, list[str]]:
        """Owner -> its topics, for owners that have any; other topics are forgotten."""
        self._known = {topic: self.owner(topic) for topic in sizes}
        found: dict[str, list[str]] = {}
        for topic, owner in self._known.items():
            if owner is not None:
                found.setdefault(owner, []).append(topic)
        return found


@dataclass(frozen=True, slots=True)
class Usage:
    """What an owner uses.

    Attributes:
        budget: what it may use.
        used_bytes: the size of its topics, as its budget counts them; the least it can be while
            brokers are not seen.
        topics: its topics.
        fill: how it grows.
        slope: the position of the factor between soft and hard bytes; None outside.
        factor: the factor of its writers, 0.0 to 1.0.
        unseen: the brokers that were not seen for longer than the validity.
        at: when it was computed, steady seconds.
    """

    budget: Budget
    used_bytes: int
    topics: tuple[str, ...]
    fill: Fill
    slope: Slope | None
    factor: float
    unseen: tuple[int, ...]
    at: float

    @property
    def ratio(self) -> float:
        """The used part of the hard bytes."""
        return self.used_bytes / self.budget.hard_bytes

    @property
    def bytes_per_second(self) -> float | None:
        """The growth in the last minutes; None before a second reading."""
        return rate_over(self.fill, LONGEST_WINDOW_S)

    @property
    def seconds_to_hard(self) -> float | None:
        """The time until the hard bytes at this growth; None if over ten years, or unknown."""
        return seconds_to(self.budget.hard_bytes - self.used_bytes, self.bytes_per_second)

    @property
    def state(self) -> State:
        """What its budget does to its writers."""
        return "free" if self.factor == 1.0 else "slowed" if self.factor > 0.0 else "paused"

    def next_read_s(self, cluster_bytes_per_second: float, shortest_s: float) -> float:
        """How long after ``at`` its topics are read again, seconds.

        Args:
            cluster_bytes_per_second: how fast all volumes fill together. An owner that begins to
                write may be as fast.
            shortest_s: the shortest time, > 0.
        """
        budget, used = self.budget, self.used_bytes
        if used >= budget.hard_bytes:
            return max(shortest_s, HARD_S)
        left = (budget.soft_bytes if used < budget.soft_bytes else budget.hard_bytes) - used
        fastest = max(cluster_bytes_per_second, self.fill.fastest_bytes_per_second or 0.0)
        # Half of the time, because the next reading may be late, and the growth faster.
        half_s = 0.5 * left / fastest if fastest > 0.0 else FAR_S
        return max(shortest_s, min(FAR_S, half_s))


@dataclass(frozen=True, slots=True)
class BudgetRules:
    """The rules for all budgets.

    Attributes:
        slope: horizon and pace of factors; its soft limit is not used.
        validity_s: how long a reading counts, seconds.
        is_enforced: whether the factors apply.
        by_quotas: whether client quotas apply them, and so only to owners with principals.
        unslowed: the owners whose principals would need too many client quotas.
    """

    slope: SlopeRules
    validity_s: float
    is_enforced: bool
    by_quotas: bool = False
    unslowed: frozenset[str] = frozenset()

    def enforces(self, budget: Budget) -> bool:
        """Whether the factor of an owner applies."""
        if self.by_quotas and (not budget.principals or budget.owner in self.unslowed):
            return False
        return self.is_enforced


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of topics.

    Attributes:
        sizes: the sizes of topics.
        unseen: the brokers that were not seen for longer than the validity.
        at: the moment, steady seconds.
    """

    sizes: Mapping[str, TopicSize]
    unseen: tuple[int, ...]
    at: float


def next_usages(
    owners: Owners,
    before: Mapping[str, Usage],
    seen: Seen,
    rules: BudgetRules,
    read: Collection[str] | None = None,
) -> dict[str, Usage]:
    """What every owner uses after new readings, in the order of the budgets.

    Args:
        owners: the budgets.
        before: owner -> its usage before.
        seen: what is known of topics.
        rules: the rules for all budgets.
        read: the owners whose topics were read, while the others keep their usage; None for all,
            which is needed after a change of the budgets.
    """
    topics: Mapping[str, Sequence[str]] = {} if read is not None else owners.topics(seen.sizes)
    usages: dict[str, Usage] = {}
    for budget in owners.budgets:
        owner, known = budget.owner, before.get(budget.owner)
        last = known if known is not None and known.budget == budget else None
        if read is None or last is None:
            names: Sequence[str] = topics.get(owner, ())
        elif owner in read:
            # A reading of some topics has no new ones.
            names = last.topics
        else:
            # An old size, as if it was read now, would look like no growth.
            usages[owner] = last
            continue
        usages[owner] = _next_usage(budget, last, names, seen, rules)
    return usages


def _next_usage(
    budget: Budget, before: Usage | None, topics: Iterable[str], seen: Seen, rules: BudgetRules
) -> Usage:
    names, now = tuple(topics), seen.at
    counted = 1 if budget.counts_replicas else 0
    # A topic of a broker that is no longer seen has no size.
    used = sum(seen.sizes[topic][counted] for topic in names if topic in seen.sizes)
    # Sums of other brokers are no growth.
    continues = before is not None and before.unseen == seen.unseen
    fill = next_fill(before.fill, now, used) if before and continues else first_fill(now, used)
    slope: Slope | None = None
    factor = 1.0
    if used >= budget.hard_bytes:
        # The position is kept for when some bytes are freed.
        slope, factor = before.slope if before else None, 0.0
    elif used >= budget.soft_bytes:
        applied = before.factor if before is not None and rules.enforces(budget) else 1.0
        soft_limit = MinAvailableBytes(budget.hard_bytes - budget.soft_bytes)
        slope = next_slope(
            before.slope if before else None,
            [_as_volume(budget, used, fill, now)],
            replace(rules.slope, soft_limit=soft_limit),
            applied,
            now,
        )
        factor = 1.0 if slope is None else min(slope.factor, _brake(budget, used, fill, slope))
    return Usage(budget, used, names, fill, slope, factor, seen.unseen, now)


def _brake(budget: Budget, used_bytes: int, fill: Fill, slope: Slope) -> float:
    """The factor at which the rest of a budget lasts for ``BRAKE_S``, in steps.

    The slope follows rates of a minute. The rest of a small budget may be written sooner.
    """
    learned = slope.learned.get((_NOWHERE, budget.owner))
    written = max(learned.written if learned else 0.0, fill.bytes_per_second or 0.0)
    if written <= 0.0:
        return 1.0
    wanted = (budget.hard_bytes - used_bytes) / (written * BRAKE_S)
    return min(1.0, round(max(1, int(wanted / STEP)) * STEP, 2))


def throttles(usages: Iterable[Usage]) -> tuple[dict[str, BudgetThrottle], tuple[str, ...]]:
    """The throttles of owners past their soft bytes, and the owners that had to be left out.

    There are ``MOST_OWNERS`` with ``MOST_TOPICS``, whose names have ``MOST_CHARACTERS`` together.
    Owners that use the largest part of their budget come first, and those that do not fit beside
    them are left out.
    """
    found: dict[str, BudgetThrottle] = {}
    left_out: list[str] = []
    characters = count = 0
    for usage in sorted(usages, key=lambda each: (-each.ratio, each.budget.owner)):
        if usage.factor == 1.0 or not usage.topics:
            continue
        wanted = sum(map(len, usage.topics))
        fits = characters + wanted <= MOST_CHARACTERS and count + len(usage.topics) <= MOST_TOPICS
        if not fits or len(found) == MOST_OWNERS:
            left_out.append(usage.budget.owner)
        else:
            characters, count = characters + wanted, count + len(usage.topics)
            topics = tuple(sorted(usage.topics))
            principals = usage.budget.principals
            found[usage.budget.owner] = BudgetThrottle(usage.factor, topics, usage.at, principals)
    return found, tuple(left_out)


def sentence(usage: Usage) -> str:
    """For example "60 % of 200.0 GB"; with "at least" while a broker is not seen."""
    least = "at least " if usage.unseen else ""
    return f"{least}{100 * usage.ratio:.0f} % of {size(usage.budget.hard_bytes)}"


def _as_volume(budget: Budget, used_bytes: int, fill: Fill, now: float) -> VolumeState:
    """A budget as a volume of its hard bytes whose limit is to be full."""
    left = budget.hard_bytes - used_bytes
    volume = Volume(_NOWHERE, budget.owner, budget.hard_bytes, left)
    return VolumeState(volume, now, Verdict(violates=False, threshold_bytes=0.0), True, fill)
