"""A restart from end to end: board, keeper, file, and a new board that knows what the old knew."""

from pathlib import Path

from sidecar.control.board import Board, PersistedState
from sidecar.state import StateFile
from sidecar.state.writer import StateWriter
from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.limits import Limit, MinAvailableBytes
from sidecar.throttle.memory import Override
from tests.throttle.build import FakeClock, reading, whole

LIMIT = MinAvailableBytes(10)
VALIDITY_S = 300.0
T = 2_000_000_000.0


def begin(path: Path, clock: FakeClock, limit: Limit = LIMIT) -> tuple[Board, StateWriter]:
    """A start, as the daemon does it: with what is in the file."""
    file = StateFile(path, limit)
    kept = file.load(clock())
    assert kept is None or isinstance(kept, PersistedState)
    board = Board(VolumeLimit(limit, VALIDITY_S, 1.0), clock, restored=kept)
    return board, StateWriter(board, file, lambda steady_s: steady_s, 300.0)


async def restarted(
    path: Path, clock: FakeClock, state_writer: StateWriter, *, down_s: float
) -> Board:
    """The old one keeps and is gone; some time later there is a new one."""
    assert await state_writer.write()
    clock.now += down_s
    board, _ = begin(path, clock)
    return board


async def test_a_full_broker_that_went_down_still_throttles(tmp_path: Path) -> None:
    """It is fenced and the sidecar restarts after the validity: the throttle is not released."""
    path, clock = tmp_path / "state.json", FakeClock(T)
    board, state_writer = begin(path, clock)
    board.observe(whole(T, [reading(1, T, {"/d": 50}), reading(2, T, {"/d": 5})]))
    board.observe(whole(T + 1, [reading(1, T + 1, {"/d": 50})], fenced=[2]))
    assert 0.0 == board.snapshot.decision.factor

    board = await restarted(path, clock, state_writer, down_s=10 * VALIDITY_S)
    # Nothing was seen for so long that there is no valid factor, until the first poll.
    assert Source.FALLBACK == board.snapshot.decision.source
    board.observe(whole(clock(), [reading(1, clock(), {"/d": 50})], fenced=[2]))
    assert (0.0, Source.OBSERVATION) == effect(board)
    assert [(2, "/d")] == [
        (state.volume.broker_id, state.volume.log_dir)
        for state in board.snapshot.decision.violations
    ]


async def test_a_decision_that_is_still_valid_holds_at_once_and_since_it_began(
    tmp_path: Path,
) -> None:
    """60 s of 300 are over: 0.0 before any poll, with 240 s left."""
    path, clock = tmp_path / "state.json", FakeClock(T)
    board, state_writer = begin(path, clock)
    board.observe(whole(T, [reading(1, T, {"/d": 5})]))
    old = board

    board = await restarted(path, clock, state_writer, down_s=60)
    assert (0.0, Source.OBSERVATION) == effect(board)
    assert T == board.snapshot.since
    assert T + VALIDITY_S == board.snapshot.decision.valid_until
    assert 1 == board.snapshot.generation
    assert old.etag != board.etag


async def test_another_decision_began_at_the_restart(tmp_path: Path) -> None:
    """The factor expired while nobody was there to see it."""
    path, clock = tmp_path / "state.json", FakeClock(T)
    board, state_writer = begin(path, clock)
    board.observe(whole(T, [reading(1, T, {"/d": 5})]))

    board = await restarted(path, clock, state_writer, down_s=VALIDITY_S + 1)
    assert (1.0, Source.FALLBACK) == effect(board)
    assert clock() == board.snapshot.since
    assert 0 == board.tally.fallback_applied


async def test_an_override_is_in_force_with_its_end(tmp_path: Path) -> None:
    """It ends when it would have ended without the restart."""
    path, clock = tmp_path / "state.json", FakeClock(T)
    board, state_writer = begin(path, clock)
    override = Override(0.5, "a migration", T, T + 100)
    board.set_override(override)

    board = await restarted(path, clock, state_writer, down_s=60)
    assert (0.5, Source.OVERRIDE) == effect(board)
    assert override == board.snapshot.decision.override
    assert T == board.snapshot.since
    clock.now = T + 100.001
    board.update(lambda memory: memory)
    assert Source.FALLBACK == board.snapshot.decision.source


async def test_an_override_that_ended_meanwhile_is_not_in_force(tmp_path: Path) -> None:
    """A restart gives it no second life."""
    path, clock = tmp_path / "state.json", FakeClock(T)
    board, state_writer = begin(path, clock)
    board.set_override(Override(0.5, "a migration", T, T + 100))

    board = await restarted(path, clock, state_writer, down_s=101)
    assert Source.FALLBACK == board.snapshot.decision.source


async def test_another_limit_decides_anew(tmp_path: Path) -> None:
    """What 10 bytes allowed is not known to be allowed by 60, before a poll says so."""
    path, clock = tmp_path / "state.json", FakeClock(T)
    board, state_writer = begin(path, clock)
    board.observe(whole(T, [reading(1, T, {"/d": 50})]))
    assert (1.0, Source.OBSERVATION) == effect(board)
    await state_writer.write()
    board, _ = begin(path, clock, MinAvailableBytes(60))
    assert Source.FALLBACK == board.snapshot.decision.source
    assert [True] == [state.violates for state in board.snapshot.memory.volumes()]


def effect(board: Board) -> tuple[float, Source]:
    decision = board.snapshot.decision
    return decision.factor, decision.source
