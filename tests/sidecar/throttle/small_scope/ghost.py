"""The ghost: what each broker last answered and when, and what an operator forgot.

It follows docs/how-it-decides.md and not the program, so that the claims can compare a decision
with what was shown.
"""

import math
from functools import cache
from typing import NamedTuple

from tests.sidecar.throttle.small_scope.events import FENCED, LEFT, Answer, Event
from tests.sidecar.throttle.small_scope.scopes import (
    LIMIT,
    LOG_DIRS,
    OFFLINE,
    SIZES,
    UNREADABLE,
    VALIDITY_S,
    Scope,
)


class SeenVolume(NamedTuple):
    """A log dir as its broker last answered.

    Attributes:
        size: the last sizes that count; None without any.
        read_at: when they were read.
        violates: whether they violate, by the limit and the margin.
        shows: what the last answer has: "sizes", offline or unreadable.
    """

    size: str | None = None
    read_at: float = -math.inf
    violates: bool = False
    shows: str = "sizes"


class SeenBroker(NamedTuple):
    """A broker as last listed and as it last answered.

    Attributes:
        place: "active", FENCED or LEFT.
        answered_at: when it last answered.
        was_fenced: whether it was listed as fenced since.
        absent_since: since when lists of the fenced brokers lack it; None if the last has it.
        volumes: its log dirs.
    """

    place: str = "active"
    answered_at: float = -math.inf
    was_fenced: bool = False
    absent_since: float | None = None
    volumes: tuple[SeenVolume, SeenVolume] = (SeenVolume(), SeenVolume())

    @property
    def seen_at(self) -> float:
        """When all its log dirs were seen: with sizes, or offline, where nothing is written."""
        unreadable = [each.read_at for each in self.volumes if each.shows == UNREADABLE]
        return min(self.answered_at, *unreadable) if unreadable else self.answered_at

    def counts(self, now: float) -> bool:
        """Whether its violations count at an observation."""
        return self.was_fenced or is_fresh(self.answered_at, now)

    def again(self, now: float) -> tuple[str, str]:
        """The answer that repeats its last one; roomy for what no longer counts."""
        first, second = (
            "roomy"
            if not each.violates and not is_fresh(self.answered_at, now)
            else each.size or "roomy"
            if each.shows == "sizes"
            else each.shows
            for each in self.volumes
        )
        return first, second


class Ghost(NamedTuple):
    """What the rules need to know of the past.

    Attributes:
        brokers: the brokers 1 and 2.
        listed_at: when they were last listed.
        whole_at: the oldest of what the last sight of all active brokers was made of.
    """

    brokers: tuple[SeenBroker, SeenBroker] = (SeenBroker(), SeenBroker())
    listed_at: float = -math.inf
    whole_at: float = -math.inf

    def violating(self, now: float) -> dict[tuple[int, str], float]:
        """Broker and log dir -> when its violation was last shown, for those that count."""
        shown: dict[tuple[int, str], float] = {}
        for number, broker in enumerate(self.brokers, 1):
            one, other = broker.volumes
            if (one.violates or other.violates) and broker.counts(now):
                listed_at = self.listed_at if broker.was_fenced else -math.inf
                for log_dir, volume in zip(LOG_DIRS, broker.volumes, strict=True):
                    if volume.violates:
                        # By sizes, by a later answer, or by a list with the fenced broker.
                        shown[number, log_dir] = max(volume.read_at, broker.answered_at, listed_at)
        return shown

    def sight(self) -> float:
        """The oldest of what all active brokers and the list show; minus infinity without."""
        active = [broker.seen_at for broker in self.brokers if broker.place == "active"]
        return min(self.listed_at, *active) if active else -math.inf

    def after(self, event: Event, now: float, scope: Scope) -> "Ghost":
        """The ghost after an event."""
        match event.kind:
            case "forget":
                brokers = list(self.brokers)
                brokers[event.broker - 1] = forgotten(self.brokers[event.broker - 1], event.log_dir)
                ghost = Ghost((brokers[0], brokers[1]), self.listed_at, self.whole_at)
                # Only where a violation was forgotten, the rest is looked at again.
                return ghost._replace(whole_at=ghost.sight()) if self.violating(now) else ghost
            case "whole":
                return self.shown(event, now, event.lists_fenced, scope)
            case "partial":
                return self.shown(event, now, None, scope)
        return self

    def shown(self, event: Event, now: float, lists_fenced: bool | None, scope: Scope) -> "Ghost":
        """The ghost after an observation; its list has the fenced brokers, or not, or is None."""
        answers = dict(event.answers)
        first, second = (
            broker
            if (answer := answers.get(number)) is None
            else told(broker, answer, now, lists_fenced, (scope.margin, scope.soft_limit))
            for number, broker in enumerate(self.brokers, 1)
        )
        listed_at = self.listed_at if lists_fenced is None else now
        ghost = Ghost((first, second), listed_at, self.whole_at)
        sight = ghost.sight()
        return Ghost(ghost.brokers, listed_at, sight) if is_fresh(sight, now) else ghost


def is_fresh(at: float, now: float) -> bool:
    """Whether what was seen still counts."""
    return now <= at + VALIDITY_S


def forgotten(broker: SeenBroker, log_dir: str | None) -> SeenBroker:
    """A broker after an operator had it, or one of its log dirs, forgotten."""
    if log_dir is None:
        return SeenBroker(broker.place)
    if broker.answered_at == -math.inf:
        return broker
    volumes = [
        SeenVolume(shows=volume.shows) if path == log_dir else volume
        for path, volume in zip(LOG_DIRS, broker.volumes, strict=True)
    ]
    return broker._replace(volumes=(volumes[0], volumes[1]))


@cache
def told(
    broker: SeenBroker,
    answer: Answer,
    now: float,
    lists_fenced: bool | None,
    rules: tuple[int, bool],
) -> SeenBroker:
    """A broker after an observation.

    Args:
        broker: the broker before.
        answer: its answer, or why there is none.
        now: steady seconds.
        lists_fenced: whether the list of brokers has the fenced ones; None without a list.
        rules: the release margin in bytes, and whether a soft limit is set.
    """
    margin, has_slope = rules
    if lists_fenced is not None:
        broker = placed(broker, answer, now, has_slope=has_slope, lists_fenced=lists_fenced)
    if isinstance(answer, str):
        return broker
    first, second = (
        seen(volume, shows, now, margin)
        for volume, shows in zip(broker.volumes, answer, strict=True)
    )
    return SeenBroker("active", now, volumes=(first, second))


def placed(
    broker: SeenBroker, answer: Answer, now: float, *, has_slope: bool, lists_fenced: bool
) -> SeenBroker:
    """A broker after a list that has it as active, as fenced, or not at all."""
    if answer not in {FENCED, LEFT}:
        return broker._replace(place="active", absent_since=None)
    place = str(answer)
    absent_since = broker.absent_since
    if lists_fenced:
        absent_since = None if place == FENCED else now if absent_since is None else absent_since
    kept = [
        volume
        if volume.violates or (has_slope and volume.size == "soft")
        else SeenVolume(shows=volume.shows)
        for volume in broker.volumes
    ]
    left = broker._replace(
        place=place,
        was_fenced=broker.was_fenced or (place == FENCED and lists_fenced),
        absent_since=absent_since,
        volumes=(kept[0], kept[1]),
    )
    if lists_fenced and absent_since is not None:
        stays = is_fresh(absent_since, now)
    else:
        stays = left.counts(now)
    return left if stays and any(volume.size for volume in kept) else SeenBroker(place)


def seen(volume: SeenVolume, shows: str, now: float, margin: int) -> SeenVolume:
    """A log dir after its broker's answer."""
    if shows in {OFFLINE, UNREADABLE}:
        return volume._replace(shows=shows)
    needed = LIMIT + (margin if volume.violates else 0)
    return SeenVolume(shows, now, SIZES[shows] <= needed)
