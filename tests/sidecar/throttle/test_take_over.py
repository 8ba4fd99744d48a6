"""The memory of an earlier run that is read late, beside what was read since the start."""

from dataclasses import replace

from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Contents, Memory
from sidecar.throttle.rules import Rules
from tests.sidecar.throttle.build import reading, whole

LIMIT = VolumeLimit(Rules(MinAvailableBytes(30), 100.0), 1.0)


def test_newer_news_counts() -> None:
    """Broker 1 has answered since; of broker 2 only the earlier run knows."""
    old, new = Contents(frozenset(), 40.0), Contents(frozenset(), 51.0)
    past = LIMIT.fold(
        Memory(), whole(40.0, [reading(1, 40.0, {"/d": 20}), reading(2, 40.0, {"/d": 90})])
    )
    past = replace(past, contents={(1, "/d"): old, (2, "/d"): old})
    since = LIMIT.fold(Memory(), whole(50.0, [reading(1, 50.0, {"/d": 60})], silent=[2]))
    since = replace(since, contents={(1, "/d"): new})
    memory = LIMIT.take_over(past, since, {1})
    assert {1: 50.0, 2: 40.0} == {key: each.read_at for key, each in memory.brokers.items()}
    assert {(1, "/d"): new, (2, "/d"): old} == memory.contents
