"""Each claim is broken once, by a world in which something is wrong, and is seen to be."""

import re
from dataclasses import replace
from typing import Any

import pytest

from sidecar.control import board
from sidecar.kafka.client.pool import Pool
from sidecar.kafka.cluster_answers import read_log_dirs
from sidecar.throttle.decision import Decision, Source, VolumeLimit
from sidecar.throttle.memory import Memory
from sidecar.volumes import Reading
from tests.simulation import claims, following, http_get, world
from tests.simulation.callback import Callback
from tests.simulation.claims import Claims
from tests.simulation.clients import Client
from tests.simulation.faults import Fault, Kind
from tests.simulation.following import Following, Line
from tests.simulation.shares import LeakBucket
from tests.simulation.sidecars import SimulatedSidecar
from tests.simulation.world import Plan, World, run

pytestmark = pytest.mark.rare

QUIET = Plan(6, 300.0, faults=())
"""A volume is full within 300 s, and no fault happens."""


SLOW_TO_FREE = Plan(16, 300.0, faults=())
"""Likewise, and it violates for longer than the reaction time."""


BLIND = Plan(6, 300.0, faults=[Fault(20.0, 270.0, Kind.CUT_FROM_CALLBACK, n) for n in range(3)])
"""The volume that violates is its leader's, and no callback hears of its sidecar meanwhile."""

ONE_BLIND = Plan(21, 240.0, faults=[Fault(40.0, 190.0, Kind.CUT_FROM_CALLBACK, 2)])
"""Another volume than broker 2's violates by its clients, and it does not hear of its sidecar."""

RESTARTED = replace(
    SLOW_TO_FREE,
    faults=[
        Fault(176.5, 60.0, Kind.CUT_FROM_CALLBACK, 0),
        Fault(177.0, 1.0, Kind.BROKER_KILLED, 0),
    ],
)
"""Broker 0 has heard that broker 2's volume violates, and restarts when it hears of nobody."""


def high_stop_line(_: int, limit_bytes: int) -> int:
    """A stop line that each volume reaches that violates."""
    return int(0.999 * limit_bytes)


@pytest.fixture(autouse=True)
def _limit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Volumes come to their limit and are released there; ``test_soft_limit`` has the others.

    Each broker has one.
    """
    monkeypatch.setattr(world, "_soft_limit", lambda *_: None)
    monkeypatch.setattr(world, "_margin_bytes", lambda *_: 0)
    monkeypatch.setattr(world, "_has_two_volumes", lambda _: False)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callbacks ask their own sidecars alone."""
    monkeypatch.setattr(world, "_asks_others", lambda _: False)


def broken(plan: Plan = QUIET) -> str:
    """What the claims say of a plan's run."""
    return "\n".join(run(plan).violations)


def test_without_faults_and_mistakes_nothing_is_broken() -> None:
    """And a volume did violate: else the others would show nothing."""
    report = run(QUIET)
    assert () == tuple(report.violations)
    assert report.figures["releases"] > 0


def test_a_callback_that_does_not_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    """It throttles by its last forecast and never releases; without one it throttles nobody.

    The volume has the space to be seen violating for long enough.
    """
    ask = World._ask

    async def at_first(of: World, *request: Any) -> None:
        if of.now() < 100.0:
            await ask(of, *request)

    monkeypatch.setattr(World, "_ask", at_first)
    assert "throttles; no volume has violated" in broken(SLOW_TO_FREE)
    monkeypatch.setattr(following, "forecasts", lambda *_: False)
    assert "throttles nobody; a volume has violated" in broken(SLOW_TO_FREE)


def test_without_sidecars_nothing_is_broken(alone: None) -> None:
    """Broker 1 throttles by its own volumes, in each violation."""
    report = run(BLIND)
    assert () == tuple(report.violations)
    assert report.figures["most by eyes of patient"] > 0
    assert report.figures["most by leak of patient"] > 0


def test_a_broker_that_does_not_see(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It never looks at its own volume."""
    monkeypatch.setattr(Following, "see", lambda *_: None)
    assert "broker 1 does not see that its own volume violates" in broken(BLIND)


def test_bytes_of_a_broker_that_does_not_see(alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise, by what lands."""
    monkeypatch.setattr(Following, "see", lambda *_: None)
    monkeypatch.setattr(Claims, "_saw", lambda *_: None)
    assert re.search("bytes by (eyes|leak) of .* past the limit of .* of broker 1", broken(BLIND))


def test_a_broker_that_does_not_see_the_stop_line(
    alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It throttles, and admits."""

    def limit_alone(line: Line, available: int, _: int, *, was: bool) -> bool:
        # Of the two the stop line alone has a margin.
        return line.margin == 0.0 and available <= line.value

    monkeypatch.setattr(world, "_stop_bytes", high_stop_line)
    monkeypatch.setattr(Line, "is_reached", limit_alone)
    assert "broker 1 does not see its volume at the stop line" in broken(BLIND)


@pytest.mark.parametrize("does_hear", [True, False])
def test_others_that_are_not_heard(*, does_hear: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker 2 asks other sidecars, whose word it needs; or it does not, and throttles nobody."""

    async def nobody(*_: object) -> None:
        pass

    monkeypatch.setattr(world, "_asks_others", lambda _: True)
    if does_hear:
        assert "" == broken(ONE_BLIND)
        return
    monkeypatch.setattr(World, "_ask_others", nobody)
    assert "broker 2 throttles nobody; a volume has violated" in broken(ONE_BLIND)


def test_without_others_a_broker_is_blind(alone: None) -> None:
    """What lands by its clients is of the fault, and bounded by its length."""
    report = run(ONE_BLIND)
    assert () == tuple(report.violations)
    assert max(n for name, n in report.figures.items() if name.startswith("most by fault")) > 0


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers have the authorizer, and a client opens a connection for every request."""
    monkeypatch.setattr(world, "_refuses", lambda _: True)


@pytest.mark.parametrize("plan", [QUIET, SLOW_TO_FREE, ONE_BLIND], ids=["6", "16", "21"])
def test_with_the_authorizer_nothing_is_broken(refusing: None, plan: Plan) -> None:
    """And such a client was refused, landed in throttles, and was admitted again."""
    report = run(plan)
    assert () == tuple(report.violations)
    assert report.figures["refused: new connection"] > 100
    assert any(name.endswith("of hasty") for name in report.figures)


def test_a_bucket_that_never_empties(refusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever dials anew is admitted, whatever has landed."""
    monkeypatch.setattr(LeakBucket, "reserve", lambda *_: True)
    assert re.search("client 2 dials anew, and landed .* bytes on broker", broken())


def test_bytes_past_the_limit_by_a_bucket_that_never_empties(
    refusing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Likewise, by what lands on the volume."""
    monkeypatch.setattr(LeakBucket, "reserve", lambda *_: True)
    monkeypatch.setattr(Claims, "landed", lambda *_: None)
    assert "bytes by leak of hasty past the limit of /var/lib/kafka of broker 1" in broken()


def test_a_debt_that_is_too_small(refusing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousandth of what has landed is taken from a share."""
    take = LeakBucket.take

    def less(bucket: LeakBucket, nbytes: float, *more: Any) -> None:
        take(bucket, nbytes / 1000.0, *more)

    monkeypatch.setattr(LeakBucket, "take", less)
    assert "dials anew, and landed" in broken()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_disk_that_keeps_nothing(*, keeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that restarts in a throttle without a sidecar has the word of its disk, or not."""
    if keeps:
        assert "" == broken(RESTARTED)
        return
    monkeypatch.setattr(Callback, "kept", lambda _: None)
    assert "broker 0 throttles nobody; it had heard of /var/lib/kafka of broker 2" in broken(
        RESTARTED
    )


def test_a_pause_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client is told to wait for longer than 4 s."""
    monkeypatch.setattr(Callback, "charge", lambda *_: 4_500.0)
    assert "was told to wait for 4.500 s" in broken()


def test_a_release_that_nobody_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every seventh second a decision is made without its violations."""
    decide = VolumeLimit.decide

    def careless(limit: VolumeLimit, memory: Memory, now: float) -> Decision:
        decision = decide(limit, memory, now)
        if decision.source is Source.OBSERVATION and int(now) % 7 == 0:
            return replace(decision, factor=1.0, violations=())
        return decision

    monkeypatch.setattr(VolumeLimit, "decide", careless)
    assert "released though" in broken()


def test_a_stop_line_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And stops began and ended: else the next ones would show nothing."""
    monkeypatch.setattr(world, "_stop_bytes", high_stop_line)
    report = run(SLOW_TO_FREE)
    assert () == tuple(report.violations)
    assert report.figures["stops"] > 0


def test_a_stop_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The document never says so."""
    monkeypatch.setattr(world, "_stop_bytes", high_stop_line)
    monkeypatch.setattr(Decision, "stop_line_reached", property(lambda _: False))
    assert "admits; a volume is at the stop line for" in broken(SLOW_TO_FREE)


def test_a_stop_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The callback does not hear of it."""
    monkeypatch.setattr(world, "_stop_bytes", high_stop_line)
    monkeypatch.setattr(Callback, "stop", lambda *_: True)
    assert "admits nothing; no volume was near the line for" in broken(SLOW_TO_FREE)


def test_a_stop_that_ends_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every seventh second nobody sees that a volume stops."""
    decide = VolumeLimit.decide

    def careless(limit: VolumeLimit, memory: Memory, now: float) -> Decision:
        decision = decide(limit, memory, now)
        return replace(decision, at_stop_line=()) if int(now) % 7 == 0 else decision

    monkeypatch.setattr(world, "_stop_bytes", high_stop_line)
    monkeypatch.setattr(VolumeLimit, "decide", careless)
    assert "admits though" in broken(SLOW_TO_FREE)


def test_memory_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each decision leaves some hundred objects behind; without that, the same world is well."""
    monkeypatch.setattr(claims, "_WARM_S", 60)
    left: list[object] = []
    decide = VolumeLimit.decide

    def wasteful(limit: VolumeLimit, memory: Memory, now: float) -> Decision:
        left.extend(object() for _ in range(300))
        return decide(limit, memory, now)

    brief = replace(QUIET, duration_s=120.0)
    assert "" == broken(brief)
    monkeypatch.setattr(VolumeLimit, "decide", wasteful)
    assert "memory grew by" in broken(brief)


def test_a_daemon_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends by itself when it is to be reloaded."""

    def reload(sidecar: SimulatedSidecar) -> None:
        sidecar.ended = "RuntimeError: a bug"

    monkeypatch.setattr(SimulatedSidecar, "reload", reload)
    plan = Plan(6, 60.0, faults=[Fault(30.0, 0.0, Kind.RELOAD, 1)])
    assert "sidecar 1 ended: RuntimeError: a bug" in broken(plan)


def test_a_client_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of the simulation's own, without which nothing would land."""

    def wrote(_: Client) -> None:
        raise KeyError("a mistake")

    monkeypatch.setattr(Client, "wrote", wrote)
    assert "client 0 ended: KeyError('a mistake')" in broken(Plan(6, 10.0, faults=()))


def test_traffic_that_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second phase finds a client that is throttled for nothing."""
    charge = Callback.charge

    def slow(callback: Callback, user: str, client: str, *more: float) -> float:
        return max(1_500.0, charge(callback, user, client, *more))  # type: ignore[arg-type]

    monkeypatch.setattr(Callback, "charge", slow)
    assert "writes" in broken()


def test_a_reading_that_is_newer_than_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each counts from a minute after it was asked for."""

    def read_later(*answer: Any) -> object:
        reading = read_log_dirs(*answer)
        assert isinstance(reading, Reading)
        return replace(reading, read_at=reading.read_at + 60.0)

    monkeypatch.setattr("sidecar.kafka.source.read_log_dirs", read_later)
    assert "which answered it last at" in broken()


def test_an_etag_of_two_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generation does not grow with the decision."""
    monkeypatch.setattr(board, "_identity", lambda _: None)
    assert "is of another decision too" in broken()


def test_a_time_that_runs_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two decisions for the same violations the later one has the earlier time."""
    decide = VolumeLimit.decide

    def backwards(limit: VolumeLimit, memory: Memory, now: float) -> Decision:
        decision = decide(limit, memory, now)
        return replace(decision, computed_at=-now) if decision.violations else decision

    monkeypatch.setattr(VolumeLimit, "decide", backwards)
    assert "computed_at runs back" in broken()


def test_metrics_that_say_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape has half of the factor that the document has."""
    joined = http_get._joined

    def halved(chunks: bytes) -> bytes | None:
        whole = joined(chunks)
        return whole and whole.replace(b"throttle_factor 1.0", b"throttle_factor 0.5")

    monkeypatch.setattr(http_get, "_joined", halved)
    assert "has metrics" in broken()


def test_connections_that_a_stop_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pool closes any."""

    async def close(_: Pool) -> None:
        pass

    monkeypatch.setattr(Pool, "close", close)
    assert re.search("sidecar 0 left [0-9]+ connections", broken(Plan(6, 10.0, faults=())))
