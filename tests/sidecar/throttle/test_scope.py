"""Whom a throttle is for, where its scope is the volume."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sidecar.throttle.decision import Decision, Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Contents, Memory, Override
from sidecar.throttle.rules import Rules
from sidecar.throttle.scope import (
    MOST_CHARACTERS,
    MOST_TOPICS,
    NEAR_S,
    UNREAD_S,
    brokers_to_read,
    with_contents,
)
from sidecar.throttle.slope import SlopeRules
from sidecar.volumes import LogDir
from tests.sidecar.throttle.build import reading, remembering, whole, with_rules

VALIDITY_S = 120.0

factors = VolumeLimit(Rules(MinAvailableBytes(30), VALIDITY_S), 0.0, is_of_volumes=True)
after = remembering(factors)


def known(memory: Memory, contents: Mapping[LogDir, str], at: float = 0.0) -> Memory:
    """Memory with topics of one letter each in log dirs."""
    found = {key: Contents(frozenset(topics), at) for key, topics in contents.items()}
    return replace(memory, contents=found)


def full(*available: int) -> Memory:
    """One volume of each of brokers 1, 2 and so on, with these bytes available."""
    return after(whole(0.0, [reading(n, 0.0, {"/d": free}) for n, free in enumerate(available, 1)]))


def decided(memory: Memory, now: float = 0.0) -> Decision:
    return factors.decide(memory, now)


def test_who_writes_to_a_full_volume_is_throttled() -> None:
    """Its topics are named, whatever lies elsewhere, and the reason says them."""
    decision = decided(known(full(20, 99), {(1, "/d"): "ba", (2, "/d"): "bc"}))
    assert (0.0, ("a", "b")) == (decision.factor, decision.topics)
    assert decision.reason.endswith("; for clients that write to a, b")


def test_of_several_full_volumes_each_counts() -> None:
    """Those of all together; three are named in words."""
    decision = decided(known(full(20, 5), {(1, "/d"): "ba", (2, "/d"): "bcde"}))
    assert ("a", "b", "c", "d", "e") == decision.topics
    assert decision.reason.endswith("; for clients that write to a, b, c and 2 more")


def test_a_volume_without_topics_throttles_nobody() -> None:
    """Something else fills it: no client can do anything about that."""
    decision = decided(known(full(20), {(1, "/d"): ""}))
    assert () == decision.topics
    assert decision.reason.endswith("; for nobody, since no topic is there")


@pytest.mark.parametrize("contents", [{}, {(1, "/d"): "a"}, {(1, "/d"): "a", (2, "/e"): "a"}])
def test_what_is_not_known_is_for_all(contents: Mapping[LogDir, str]) -> None:
    """Nothing of one full volume is enough, and the reason says which."""
    decision = decided(known(full(20, 20), contents))
    assert None is decision.topics
    unknown = 2 if contents else 1
    assert decision.reason.endswith(
        f"; for all clients, since the topics on broker {unknown} /d are not known"
    )


def see(memory: Memory, at: float, *available: int) -> Memory:
    """Memory after one more whole observation."""
    readings = [reading(n, at, {"/d": free}) for n, free in enumerate(available, 1)]
    return after(whole(at, readings), memory=memory)


def test_a_volume_that_is_full_all_of_a_sudden_is_read_first() -> None:
    """For a second nobody is throttled because of it; what is known of others counts on."""
    memory = known(see(full(99, 99), 10.0, 99, 20), {(2, "/d"): "b"})
    memory = see(memory, 20.0, 20, 20)
    for at in (20.0, 20.0 + UNREAD_S):
        decision = decided(memory, at)
        assert (0.0, ("b",), 20.0 + UNREAD_S) == (
            decision.factor,
            decision.topics,
            decision.valid_until,
        )
        assert decision.reason.endswith(
            "; for clients that write to b, and the topics on broker 1 /d are being read"
        )
    assert None is decided(memory, 20.1 + UNREAD_S).topics
    later = see(memory, 20.9, 20, 20)
    assert None is decided(later, 20.1 + UNREAD_S).topics, "from its first violation on"
    aimed = decided(known(memory, {(1, "/d"): "a", (2, "/d"): "b"}, 20.0), 20.5)
    assert (("a", "b"), 20.0 + VALIDITY_S) == (aimed.topics, aimed.valid_until)
    alone = decided(see(full(99), 10.0, 20), 10.0)
    assert () == alone.topics
    assert alone.reason.endswith("; for nobody yet, since the topics on broker 1 /d are being read")


def test_a_throttle_is_not_released_to_read_what_lies_there() -> None:
    """One that may have been in force: at the start, after blindness, of what is not valid."""
    blind = VALIDITY_S + 1.0
    stopping = with_rules(factors, stop_line=MinAvailableBytes(25))
    stopped = remembering(stopping)(whole(10.0, [reading(1, 10.0, {"/d": 20})]), memory=full(99))
    lapsed = known(full(99, 99), {(1, "/d"): "a"}, -VALIDITY_S)
    for memory, at in (
        (full(20), 0.0),
        (see(full(20), 10.0, 20), 10.0),
        (see(full(99), blind, 20), blind),
        (stopped, 10.0),
        (see(lapsed, 10.0, 20, 99), 10.0),
    ):
        assert None is stopping.decide(memory, at).topics


def test_contents_count_for_the_validity() -> None:
    """To its end; those of a fenced broker for as long as its volume counts."""
    memory = full(20, 99)
    later = after(
        whole(VALIDITY_S + 1.0, [reading(1, VALIDITY_S + 1.0, {"/d": 20})]), memory=memory
    )
    contents: dict[LogDir, str] = {(1, "/d"): "a"}
    assert ("a",) == decided(known(later, contents, 1.0), VALIDITY_S + 1.0).topics
    assert None is decided(known(later, contents, 0.9), VALIDITY_S + 1.0).topics
    fenced = after(whole(500.0, [reading(2, 500.0, {"/d": 99})], fenced=[1]), memory=memory)
    assert ("a",) == decided(known(fenced, contents), 500.0).topics


@pytest.mark.parametrize(
    ("topics", "why"),
    [
        ([f"t{n}" for n in range(MOST_TOPICS + 1)], "2,001 topics, more than the maximum of 2,000"),
        ([f"{n:0249}" for n in range(MOST_CHARACTERS // 249 + 1)], "topics are too long: 64,"),
    ],
)
def test_too_many_topics_are_for_all(topics: list[str], why: str) -> None:
    """By number and by the length of their names; one fewer of them can be named."""
    memory = full(20)
    for count, is_named in ((len(topics) - 1, True), (len(topics), False)):
        contents = {(1, "/d"): Contents(frozenset(topics[:count]), 0.0)}
        decision = decided(replace(memory, contents=contents))
        assert is_named == (decision.topics is not None)
        assert is_named == (why not in decision.reason)


def test_only_what_is_seen_has_a_scope() -> None:
    """The fallback and an operator's factor are for all, and so is what the setting says."""
    memory = known(full(20), {(1, "/d"): "a"})
    assert None is replace(factors, is_of_volumes=False).decide(memory, 0.0).topics
    overridden = replace(memory, override=Override(0.0, "by hand", 0.0, 9.0))
    for decision, source in (
        (decided(overridden), Source.OVERRIDE),
        (decided(memory, VALIDITY_S + 1.0), Source.FALLBACK),
    ):
        assert (source, None) == (decision.source, decision.topics)
    assert None is decided(known(full(99), {(1, "/d"): "a"})).topics, "nobody is throttled"


def test_the_slope_is_for_what_lies_on_it() -> None:
    """Those below the soft limit; none is, while the factor still rises: then what was read."""
    rules = with_rules(factors, slope=SlopeRules(MinAvailableBytes(60), horizon_s=1e6))
    fold = remembering(rules)
    memory = Memory()
    for at, free in ((0.0, 99), (10.0, 50), (20.0, 45)):
        memory = fold(
            whole(at, [reading(1, at, {"/d": free}), reading(2, at, {"/d": 99})]), memory=memory
        )
    memory = known(memory, {(1, "/d"): "a", (2, "/d"): "b"})
    decision = rules.decide(memory, 20.0)
    assert (True, ("a",)) == (decision.is_sloped, decision.topics)
    memory = fold(whole(30.0, [reading(n, 30.0, {"/d": 99}) for n in (1, 2)]), memory=memory)
    decision = rules.decide(memory, 30.0)
    assert (True, ("a", "b")) == (decision.is_sloped, decision.topics)


def test_brokers_are_read_before_they_throttle() -> None:
    """From two minutes before a volume is expected at its limit on; none while it has time."""
    memory = Memory()
    for at, free in ((0.0, 99), (10.0, 94)):
        readings = [
            reading(1, at, {"/d": free}),
            reading(2, at, {"/d": 99}),
            reading(3, at, {"/d": 9}),
        ]
        memory = after(whole(at, readings), memory=memory)
    # 64 bytes above the limit, at half a byte a second.
    assert {3} == brokers_to_read(memory, 10.0 + 128.0 - NEAR_S - 0.1)
    assert {1, 3} == brokers_to_read(memory, 10.0 + 128.0 - NEAR_S)
    gone = after(whole(20.0, [reading(1, 20.0, {"/d": 89})], fenced=[3]), memory=memory)
    assert {1} == brokers_to_read(gone, 20.0), "a fenced broker can't be read"


def test_what_was_read_takes_the_place_of_what_was_known() -> None:
    """A log dir that its broker no longer has is gone; others are kept while they matter."""
    contents: dict[LogDir, str] = {(1, "/d"): "a", (1, "/e"): "b", (2, "/d"): "c", (3, "/d"): "d"}
    before = known(full(20), contents)
    assert {
        (1, "/d"): Contents(frozenset("x"), 5.0),
        (2, "/d"): Contents(frozenset("c"), 0.0),
    } == with_contents(before, {1: {"/d": {"x"}}}, {1, 2}, 5.0)


def test_an_offline_log_dir_keeps_its_topics() -> None:
    """Its broker's answers lack it, also before a poll shows that it is offline."""
    memory = after(whole(0.0, [reading(1, 0.0, {"/d": 20, "/e": 90})]))
    memory = known(memory, {(1, "/d"): "a", (1, "/e"): "b"})
    memory = replace(memory, contents=with_contents(memory, {1: {"/e": {"c"}}}, {1}, 5.0))
    day = 86400.0
    for answer, topics in (
        (reading(1, day, {"/e": 90}, offline=["/d"]), ("a",)),
        (reading(1, day, {"/e": 90}, unreadable=["/d"]), None),
    ):
        later = after(whole(day, [answer]), memory=memory)
        contents = with_contents(later, {1: {"/e": {"c"}}}, {1}, day)
        assert topics == decided(replace(later, contents=contents), day).topics
