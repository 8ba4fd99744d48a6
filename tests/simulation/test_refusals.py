"""The model of the authorizer by the same courses as the jar's own test, ``RefusalsTest``."""

from tests.simulation.refusals import FORGET_MS, Refusal, Refusals
from tests.simulation.shares import RESERVED_NANOS, LeakBucket, LeakShares

S = 1_000_000_000
KNOWN, NEW = (1, 1), (1, 2)


class Refusing:
    """A broker's refusals, by what a test sets."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.stop = False
        self.admits = False
        self.refusals = Refusals()

    def sends(self, connection: tuple[int, int], at_s: float) -> Refusal | None:
        """What becomes of a request."""
        return self.refusals.check(
            connection,
            round(at_s * S),
            stops_anybody=self.factor == 0.0,
            stops=self.factor == 0.0,
            admits_nobody=self.stop,
            admits=lambda: self.admits,
        )


def test_who_owes_nothing_passes_however_large() -> None:
    """At 20 kB/s a request of 1 MB passes, and the next one 50 s after it has landed."""
    bucket = LeakBucket(0)
    assert bucket.reserve(20_000.0, 0)
    bucket.take(1e6, 20_000.0, 0)
    assert not bucket.reserve(20_000.0, 49 * S)
    assert bucket.reserve(20_000.0, 50 * S)


def test_one_request_is_under_way_until_it_has_landed() -> None:
    """Or is not sent on, or did not land within five seconds."""
    bucket = LeakBucket(0)
    assert bucket.reserve(1.0, 0)
    assert not bucket.reserve(1.0, RESERVED_NANOS - 1)
    assert bucket.reserve(1.0, RESERVED_NANOS)
    bucket.cancel()
    assert bucket.reserve(1.0, RESERVED_NANOS)


def test_shares_of_a_budget() -> None:
    """Rates before of 6 and 3 MB/s: 4, 2 and 3 ninths; those without a rate have one bucket."""
    parts = [LeakShares.part(before, 9e6, 4.5e6) for before in (6e6, 3e6, 0.0)]
    assert [round(9 * part, 6) for part in parts] == [4.0, 2.0, 3.0]
    shares = LeakShares(0)
    assert shares.bucket(("", "a"), 0.0) is shares.bucket(("", "b"), 0.0)
    assert shares.bucket(("", "a"), 1.0) is shares.bucket(("", "a"), 1.0)
    assert shares.bucket(("", "a"), 1.0) is not shares.bucket(("", "b"), 1.0)


def test_who_produced_before_is_never_refused() -> None:
    """But at the stop line."""
    broker = Refusing()
    assert broker.sends(KNOWN, 0.0) is None
    broker.factor = 0.0
    assert broker.sends(KNOWN, 1.0) is None
    assert Refusal.NEW_CONNECTION == broker.sends(NEW, 1.0)
    broker.stop = True
    assert Refusal.STOP_LINE == broker.sends(KNOWN, 2.0)


def test_the_verdict_lasts_until_the_release() -> None:
    """Whatever the share has by then."""
    broker = Refusing()
    broker.factor = 0.0
    assert Refusal.NEW_CONNECTION == broker.sends(NEW, 1.0)
    broker.admits = True
    assert Refusal.NEW_CONNECTION == broker.sends(NEW, 2.0)
    assert broker.sends((1, 3), 2.0) is None


def test_after_the_release_it_is_admitted_after_a_break() -> None:
    """Of half a second at first, of 50 ms after five; after 20 s in any case."""
    broker = Refusing()
    broker.factor = 0.0
    for connection in (NEW, KNOWN):
        broker.sends(connection, 1.0)
    broker.factor = 1.0
    assert Refusal.RELEASE == broker.sends(NEW, 10.0)
    assert Refusal.RELEASE == broker.sends(NEW, 10.4)
    assert broker.sends(NEW, 10.9) is None
    assert broker.sends(NEW, 10.9) is None
    at_s = 10.0
    while broker.sends(KNOWN, at_s) is not None:
        at_s += 0.04
    assert 29.9 < at_s < 30.1


def test_verdicts_are_forgotten_some_time_after_the_release() -> None:
    """Of clients that send nothing any more."""
    broker = Refusing()
    broker.factor = 0.0
    assert Refusal.NEW_CONNECTION == broker.sends(NEW, 1.0)
    broker.factor = 1.0
    assert broker.sends(NEW, 1.0 + FORGET_MS / 1000.0) is None
