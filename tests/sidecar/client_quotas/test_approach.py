"""Client quotas that fall before a volume is at its limit; a simulation of clients and a volume."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from sidecar.client_quotas.log_watch import LogWatch
from sidecar.client_quotas.rates import Rates
from sidecar.client_quotas.service import QuotaThrottle
from sidecar.client_quotas.writers import BrokerWriters
from sidecar.control.board import Board
from sidecar.quotas.entities import DEFAULT, Entity
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Override
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing, next_poll
from tests.sidecar.client_quotas.build import FakeKafka, Sidecar
from tests.sidecar.throttle.build import FakeClock, reading, whole
from tests.support.examples import mostly_slow

REST = Entity(client_id=DEFAULT)
LIMIT = 3_000_000_000
RATE = 2_000_000
CLIENTS = 6
FLOOR = 64 << 10
ALL = CLIENTS * RATE
VALIDITY_S = 300.0
TIMING = Timing(60.0, 1.0)
"""The default."""


class Filling:
    """Clients without a quota of their own fill the volume of one broker.

    Args:
        room_s: how many seconds of writing the volume has above its limit.
        knows_rates: whether a request log tells what each client writes.
        is_enforced: False in observe mode.
        burst_s: how long throttled clients write what they write in twice the time.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        room_s: float,
        *,
        knows_rates: bool = True,
        is_enforced: bool = True,
        burst_s: int = 0,
    ) -> None:
        self.burst_s = burst_s
        self._poll_at = 0.0
        self.clock, self.kafka = FakeClock(1000.0), FakeKafka()
        sidecar = Sidecar(self.kafka, self.clock)
        rules = Rules(MinAvailableBytes(LIMIT), VALIDITY_S)
        self.board = Board(VolumeLimit(rules, 1.0, is_enforced=is_enforced), self.clock)
        self.throttle = sidecar.throttle
        self.throttle.board, self.throttle.floor = self.board, FLOOR
        if knows_rates:
            logged = Rates(ALL, RATE, RATE, by_log=(1,), measured=frozenset({"client_id"}))
            monkeypatch.setattr(QuotaThrottle, "rates", logged)
        self.available = LIMIT + room_s * ALL

    @property
    def quota(self) -> float | None:
        return self.kafka.produce(REST)

    @property
    def written(self) -> float:
        """What all clients write in this second."""
        each = min(RATE, self.quota or RATE)
        if not self.burst_s or each == RATE:
            return CLIENTS * each
        turns = ((self.clock.now + 0.9 * number) // self.burst_s for number in range(CLIENTS))
        return sum(2 * each * (1 - turn % 2) for turn in turns)

    async def run(self, seconds: int, *, sees: bool = True) -> None:
        """Write, read the volume when it is due, and set quotas every 2 s."""
        for _ in range(seconds):
            self.available -= self.written
            self.clock.now += 1.0
            now = self.clock.now
            if sees and now >= self._poll_at:
                volumes = {"/d": int(self.available)}
                self.board.observe(whole(now, [reading(1, now, volumes, total=10**12)]))
                self.throttle.observe(self.board.snapshot.memory)
                self._poll_at = now + self._next_poll_s()
            if int(now) % 2 == 0:
                await self.throttle.settle()

    def _next_poll_s(self) -> float:
        snapshot, steering = self.board.snapshot, self.board.readers.steering
        plan = next_poll(
            snapshot.memory, TIMING, self.clock.now, 0.0, snapshot.released, steering=steering
        )
        return plan.delay_s


@pytest.mark.parametrize("knows_rates", [True, False], ids=["request log", "fill rate"])
@pytest.mark.parametrize("burst_s", mostly_slow([0, 6]))
async def test_little_lands_past_the_limit(
    monkeypatch: pytest.MonkeyPatch, burst_s: int, *, knows_rates: bool
) -> None:
    """Six equal clients: hardly more than the floors in the four minutes after the limit."""
    filling = Filling(monkeypatch, 300.0, knows_rates=knows_rates, burst_s=burst_s)
    while filling.available > LIMIT:
        await filling.run(1)
    await filling.run(240)
    assert LIMIT - filling.available < 1.2 * 240 * CLIENTS * FLOOR


async def test_nobody_is_slowed_while_the_limit_is_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the quotas are at their originals again when space is freed."""
    filling = Filling(monkeypatch, 300.0)
    await filling.run(215)
    assert filling.quota is None
    await filling.run(60)
    assert filling.written < ALL
    assert 1 == filling.board.readers.counts(filling.clock.now).lowered
    assert "/d of broker 1 has" in filling.board.readers.near
    assert 1.0 == filling.board.snapshot.decision.factor
    filling.available += 400 * ALL
    await filling.run(30)
    assert filling.written == ALL
    assert not filling.board.readers.near
    await filling.run(60)
    assert filling.quota is None


async def test_clients_get_what_the_volume_has_room_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Half of what they write is deleted all the time, so they need not be slowed to the floor.

    While they are, the page says so; the log does not say it each time that quotas rise and fall.
    """
    filling = Filling(monkeypatch, 200.0)
    shares, available = [], []
    for _ in range(1200):
        await filling.run(1)
        filling.available += ALL / 2
        shares.append(filling.written / ALL)
        if filling.clock.now % 2 == 0 and filling.board.snapshot.decision.factor == 1.0:
            assert filling.board.readers.near or shares[-1] > 0.9
        available.append(filling.available)
    assert LIMIT < min(available)
    assert 0.4 < sum(shares[-300:]) / 300 < 0.7
    assert 2 >= caplog.text.count("client quotas fall before the limit is reached")


async def test_a_volume_at_its_limit_is_not_said_to_be_before_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The decision says that it is full; the log does not say "has 0 B above it" as well."""
    filling = Filling(monkeypatch, 1.0)
    filling.available = LIMIT - ALL
    await filling.run(60)
    assert filling.written < ALL
    assert "fall before the limit" not in caplog.text


async def test_quotas_stay_while_a_volume_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers measure clients only while there is a quota, so it must not come and go.

    The volume fills to 100 s of writing above its limit, and 20 s of that are deleted again.
    """
    filling = Filling(monkeypatch, 140.0, knows_rates=False)
    measured = Rates(ALL, RATE, RATE, by_metrics=(1,), measured=frozenset({"client_id"}))
    since = 0.0

    def rates(throttle: QuotaThrottle) -> Rates:
        nonlocal since
        since = since if filling.quota is not None else filling.clock.now
        return measured if filling.clock.now > since + 12.0 else throttle.shown_rates

    monkeypatch.setattr(QuotaThrottle, "rates", property(rates))
    for _ in range(30):
        await filling.run(20)
        if filling.available < LIMIT + 105 * ALL:
            filling.available += 20 * ALL
    assert filling.written == ALL
    assert filling.throttle.changed < 10


async def test_a_volume_that_nobody_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotas fall for the validity at most; then they rise."""
    filling = Filling(monkeypatch, 200.0)
    await filling.run(70)
    await filling.run(100, sees=False)
    assert filling.quota is not None
    await filling.run(360, sees=False)
    assert filling.quota is None


@dataclass
class Case:
    """A way to be without the early fall."""

    name: str
    prepare: Callable[[Filling], None]
    is_enforced: bool = True


def override(filling: Filling) -> None:
    now = filling.clock.now
    filling.board.set_override(Override(1.0, "a test", now, now + 3600.0))


def scope(filling: Filling) -> None:
    async def ask(_: object) -> BrokerWriters:
        raise AssertionError

    async def names(*_: object) -> dict[str, str]:
        return {}

    writers = BrokerWriters(1, None, False, [])
    filling.throttle.logs = LogWatch(filling.board, lambda: writers, None, ask, names)


@pytest.mark.parametrize(
    "case",
    [
        Case("an operator's override", override),
        Case("a scope that is not known", scope),
        Case("observe mode", lambda _: None, is_enforced=False),
    ],
    ids=lambda case: case.name,
)
async def test_nothing_falls_before_the_limit(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """The operator decides; nobody is slowed who may not write there; observe mode only tells."""
    filling = Filling(monkeypatch, 100.0, is_enforced=case.is_enforced)
    case.prepare(filling)
    await filling.run(60)
    assert filling.quota is None
    assert (case.name == "observe mode") == (filling.throttle.would_lower > 0)
