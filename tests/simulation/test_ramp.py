"""After a release the ramp paces a backlog, and a steady producer's records don't time out by it.

By it: what is given up with the ramp, and is not when the backlog is let through at once. The
callback is the model that a test holds to the jar; with the authorizer a connection that is new in
the throttle is refused until the release, and lands nothing meanwhile.
"""

from dataclasses import replace

import pytest

from tests.simulation.backlog import FULL_BYTES_PER_S, MB, RECORD_BYTES, Producer, play

pytestmark = pytest.mark.rare

JAVA_S = 120.0
"""delivery.timeout.ms"""

LIBRDKAFKA_S = 300.0
"""message.timeout.ms"""

AT_MOST = 1.42
"""Of the rate before, in a second after the release."""


def by_the_ramp(
    *producers: Producer, throttle_s: float, after_s: float = 60.0
) -> tuple[Producer, ...]:
    """Plays with the ramp; ``given_up`` are those records alone that are not without it."""
    at_once = tuple(fresh(each) for each in producers)
    play(producers, throttle_s, after_s=after_s)
    play(at_once, throttle_s, after_s=after_s, ramp_ms=0)
    for each, unpaced in zip(producers, at_once, strict=True):
        for number in unpaced.given_up:
            each.given_up.pop(number, None)
    return at_once


def fresh(producer: Producer) -> Producer:
    """The same, of which nothing has happened yet."""
    return replace(producer, landed=[], ages=[], given_up={})


def test_a_backlog_as_old_as_its_time_out() -> None:
    """Its records get younger: a client drops requests in flight whose records time out.

    10 s after the release they are 2 s younger than the time-out, and 20 s after it 5 s younger.
    """
    producer = Producer(20.0, bytes_per_s=4.0 * MB, before_bytes_per_s=4.0 * MB, is_refused=True)
    play((producer,), 70.0)
    assert max(age for at_s, age in producer.ages if 0.0 <= at_s < 1.0) > 19.0
    assert max(age for at_s, age in producer.ages if 10.0 <= at_s) < 18.0
    assert max(age for at_s, age in producer.ages if 20.0 <= at_s) < 15.0


# Each pair of values of two columns is in one row.
@pytest.mark.parametrize(
    ("throttle_s", "time_out_s", "request_bytes", "is_refused"),
    [
        (75.0, JAVA_S, MB // 10, False),
        (75.0, LIBRDKAFKA_S, MB, True),
        (600.0, JAVA_S, MB, True),
        (600.0, LIBRDKAFKA_S, MB // 10, True),
        (600.0, LIBRDKAFKA_S, MB, False),
    ],
)
def test_a_backlog_of_80_mb(
    throttle_s: float, time_out_s: float, request_bytes: int, *, is_refused: bool
) -> None:
    """Of a producer that makes 2 MB/s all the time: paced, and nothing lost by that.

    After 600 s its oldest records time out one after another just as they are sent: the ramp sends
    them as fast as they were made. A request's pause begins when it has landed, though, so those
    are too late that time out within a request's time on the network, 22 ms for 1 MB.
    """
    producer = Producer(time_out_s, request_bytes=request_bytes, is_refused=is_refused)
    (at_once,) = by_the_ramp(producer, throttle_s=throttle_s)
    assert producer.backlog_bytes > 76 * MB
    most = AT_MOST * producer.before_bytes_per_s + request_bytes
    for second in range(10):
        assert producer.landed_in(second, second + 1.0) <= most
        assert producer.landed_in(second, 10.0) > 0
    assert max(at_once.landed_in(each, each + 1.0) for each in range(10)) > 3 * most
    on_network_s = request_bytes / FULL_BYTES_PER_S
    too_late = on_network_s * producer.bytes_per_s
    assert len(producer.given_up) * RECORD_BYTES <= too_late


def shared() -> tuple[Producer, Producer]:
    """Two producers of 1 MB/s with one quota, whose requests differ in size."""
    large = Producer(JAVA_S, bytes_per_s=1.0 * MB, before_bytes_per_s=1.0 * MB)
    return large, replace(fresh(large), request_bytes=2 * RECORD_BYTES)


@pytest.mark.parametrize("throttle_s", [10.0, 75.0])
def test_a_producer_that_was_idle_before(throttle_s: float) -> None:
    """Among others of 10 kB/s: its pace begins at theirs, and doubles every five seconds then."""
    producer = Producer(JAVA_S, before_bytes_per_s=0.0)
    other = Producer(JAVA_S, "other", bytes_per_s=1e4, before_bytes_per_s=1e4)
    by_the_ramp(producer, other, throttle_s=throttle_s, after_s=240.0)
    most = 2 * AT_MOST * other.before_bytes_per_s + producer.request_bytes
    assert max(producer.landed_in(each, each + 1.0) for each in range(10)) <= most
    assert ({}, {}) == (producer.given_up, other.given_up)


@pytest.mark.parametrize(
    ("producers", "throttle_s", "lost_mb"),
    [
        pytest.param((Producer(JAVA_S, before_bytes_per_s=0.2 * MB),), 75.0, 37, id="ten times"),
        pytest.param(shared(), 600.0, 24, id="shared quota"),
    ],
)
def test_whom_the_ramp_costs_records(
    producers: tuple[Producer, ...], throttle_s: float, lost_mb: int
) -> None:
    """Who makes more than before, or shares a quota with larger requests: what the docs say.

    One makes ten times as much from the throttle on as before. One has requests of 20 kB beside one
    of as much a second whose requests have 1 MB: both pause until the same moment, and send one
    request each then, so it lands a seventh of its rate until the other has no backlog left.
    """
    producers = tuple(fresh(each) for each in producers)
    by_the_ramp(*producers, throttle_s=throttle_s, after_s=240.0)
    lost_bytes = sum(len(each.given_up) for each in producers) * RECORD_BYTES
    assert lost_bytes == pytest.approx(lost_mb * MB, abs=MB / 2)
