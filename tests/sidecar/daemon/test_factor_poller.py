"""A factor source in place of polls: its factor, its failures, the validity and the fallback."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.control.board import Board, PersistedState
from sidecar.daemon.factor_poller import FactorPoller
from sidecar.daemon.sources import Source, read_factor
from sidecar.settings import load
from sidecar.state import StateFile
from sidecar.throttle.decision import Source as Origin
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.rules import Rules
from sidecar.throttle.schedule import Timing
from sidecar.volumes import Failure, FailureKind
from tests.sidecar.settings.support import problems
from tests.sidecar.throttle.build import FakeClock
from tests.support.daemon import started

RULES = Rules(None, 300.0)
FROM_SOURCE = {"SIDECAR_FACTOR_SOURCE": "my_source:factor"}


def poller(values: Iterator[object], clock: FakeClock, *, fallback: float = 0.0) -> FactorPoller:
    """A poller of a source that returns these values, one after the other."""
    source = Source("the factor source my:factor", lambda: next(values), read_factor)
    board = Board(VolumeLimit(RULES, fallback), clock)
    return FactorPoller(source, board, Timing(60.0, 1.0), lambda _s: None)


async def test_a_failure_keeps_the_factor_for_the_validity() -> None:
    """The example of proposal 047, with a source in place of the volumes."""
    clock = FakeClock()
    tried = poller(iter([0.25, 2.0, None, 2.0, 1]), clock)
    found, failures = [], []
    for at in (0.0, 60.0, 300.0, 301.0, 360.0):
        clock.now = at
        failures.append(await tried.poll())
        decision = tried.board.snapshot.decision
        found.append((decision.factor, decision.source, decision.reason.partition(",")[0]))
    fell_back = "the last valid observation is 301 s old: the factor source my:factor returned 2.0"
    assert [
        (0.25, Origin.OBSERVATION, "the factor source returned 0.25"),
        (0.25, Origin.OBSERVATION, "the factor source returned 0.25"),
        (0.25, Origin.OBSERVATION, "the factor source returned 0.25"),
        (0.0, Origin.FALLBACK, fell_back),
        (1.0, Origin.OBSERVATION, "the factor source returned 1"),
    ] == found
    assert [0, 1, 2, 3, 0] == failures
    assert 3 == tried.board.tally.failures[FailureKind.SOURCE]
    assert 360.0 == tried.board.tally.succeeded_at


async def test_a_factor_is_as_old_as_its_call() -> None:
    """The call takes 5 s, which do not count for the validity."""
    clock = FakeClock(100.0)

    def slow() -> Iterator[object]:
        clock.now += 5.0
        yield 0.25

    tried = poller(slow(), clock)
    await tried.poll()
    decision = tried.board.snapshot.decision
    assert (100.0, 400.0) == (decision.computed_at, decision.valid_until)


@pytest.mark.looptime(noop_cycles=1)
async def test_it_is_called_in_each_interval_and_sooner_after_a_failure() -> None:
    """After 1 s, 2 s and 4 s; then after the interval again."""
    called: list[float] = []
    now = asyncio.get_running_loop().time
    tried = poller(iter([]), FakeClock())

    async def answer(_self: object, _timeout_s: float) -> object:
        called.append(now())
        return 1.0 if len(called) in {1, 5} else Failure(FailureKind.SOURCE, "failed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "ask", answer)
        running = asyncio.create_task(tried.run())
        await asyncio.sleep(150.0)
        running.cancel()
    assert [0.0, 60.0, 61.0, 63.0, 67.0, 127.0, 128.0, 130.0, 134.0, 142.0] == [
        round(at - called[0], 3) for at in called
    ]


def test_a_restart_keeps_the_factor(tmp_path: Path) -> None:
    """The state has no limit; with a limit the factor is computed anew."""
    clock = FakeClock(1000.0)
    board = Board(VolumeLimit(RULES, 0.0), clock)
    snapshot = board.take_factor(0.25, 990.0)
    file = StateFile(tmp_path / "state.json", RULES)
    file.save(PersistedState(snapshot.memory, 0.25, Origin.OBSERVATION, 990.0), lambda at: at)
    restored = file.load(1010.0)
    assert isinstance(restored, PersistedState)
    assert 0.25 == Board(VolumeLimit(RULES, 0.0), clock, restored=restored).snapshot.decision.factor
    other = StateFile(file.path, Rules(MinAvailableBytes(1), 300.0)).load(1010.0)
    assert isinstance(other, PersistedState)
    assert other.memory.computed is None


class TestSettings:
    def test_it_needs_neither_limit_nor_brokers(self) -> None:
        """They are refused: they would have no effect."""
        assert () == problems(FROM_SOURCE)
        limit = {"SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_RATIO": "0.1"}
        assert problems(FROM_SOURCE | limit) == (
            "SIDECAR_STORAGE_PER_VOLUME_STOP_MIN_AVAILABLE_RATIO: has no effect with "
            "SIDECAR_FACTOR_SOURCE, which decides without volumes",
        )
        (problem,) = problems(FROM_SOURCE | {"SIDECAR_THROTTLE_SCOPE": "volume"})
        assert "SIDECAR_THROTTLE_SCOPE: can't be volume with SIDECAR_FACTOR_SOURCE" in problem

    @pytest.mark.parametrize("path", ["my_source", "my source:factor", ":f", "m:", "m:f()", "m.:f"])
    def test_its_form_is_checked(self, path: str) -> None:
        """It is imported only when the daemon starts."""
        (problem,) = problems({"SIDECAR_FACTOR_SOURCE": path})
        assert "is not module:attribute, such as my_factor:factor" in problem

    def test_quotas_need_brokers(self) -> None:
        """They are set there."""
        (problem,) = problems(FROM_SOURCE | {"SIDECAR_QUOTA_SOURCE": "a:b"})
        assert problem.startswith("SIDECAR_QUOTA_SOURCE: needs SIDECAR_KAFKA_ADMIN_BOOTSTRAP_")
        assert load(environ=FROM_SOURCE).settings.kafka_admin is None


@pytest.mark.slow
async def test_the_daemon_runs_with_a_source(tmp_path: Path) -> None:
    """Factor, page, readiness and metric; a source that breaks is a failure that the log names."""
    source = tmp_path / "my_source.py"
    wanted = tmp_path / "factor"
    wanted.write_text("0.25")
    source.write_text(f"def factor():\n    return float(open({str(wanted)!r}).read())\n")
    settings = FROM_SOURCE | {
        "SIDECAR_STORAGE_CHECK_INTERVAL": "PT0.1S",
        "SIDECAR_STATE_FILE": str(tmp_path / "state.json"),
        "PYTHONPATH": str(tmp_path),
    }
    async with started(tmp_path, settings) as daemon:
        await daemon.decides(0.25)
        assert "the factor source returned 0.25" == (await daemon.factor())["reason"]
        page = (await daemon.ask("/")).text
        assert "the factor source returned 0.25" in page
        assert 200 == (await daemon.ask("/readyz")).status_code
        wanted.write_text("2.0")
        await daemon.logs(
            "polling: source: the factor source my_source:factor returned 2.0, which is not a"
        )
        assert 0.25 == (await daemon.factor())["factor"]
        metrics = (await daemon.ask("/metrics")).text
        assert 'kafka_throttle_poll_failures_total{kind="source"}' in metrics
