"""Users with too many new producer ids are held, for as long as the KIP says, and nobody else."""

from dataclasses import replace

import pytest

from sidecar.board import Board
from sidecar.producer_ids import ProducerIdWatch, holds_of
from sidecar.quotas.entities import DEFAULT
from sidecar.quotas.id_quotas import Origin, ProducerIdQuota
from sidecar.quotas.producer_ids import ProducerIdSettings
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.holds import UserHold
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from tests.throttle.build import FakeClock

FIFTY = ProducerIdQuota(50)
AT_ONCE = 550
"""11 windows of 50."""


def watching(
    clock: FakeClock, quota: ProducerIdQuota = FIFTY, memory: Memory | None = None
) -> tuple[Board, ProducerIdWatch]:
    factors = VolumeLimit(MinAvailableBytes(30), 120.0, fallback=1.0)
    board = Board(factors, clock, memory=memory)
    return board, ProducerIdWatch(board, ProducerIdSettings(), quota, cleanup_s=60.0)


def opens(watch: ProducerIdWatch, user: str, count: int, first: int = 0) -> None:
    for producer_id in range(first, first + count):
        watch.seen(user, producer_id)


def test_a_user_is_held_from_the_first_id_too_many_and_no_other_user_is() -> None:
    """The module's example: 72 s for each id beyond 550 at once; ids seen before are free."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock)
    opens(watch, "bob", AT_ONCE)
    opens(watch, "bob", AT_ONCE)
    opens(watch, "alice", 5)
    assert {} == board.snapshot.decision.users
    watch.seen("bob", AT_ONCE)
    assert {"bob": 0.0} == board.snapshot.decision.users
    assert 1072.0 == board.snapshot.decision.users_until
    watch.seen("bob", AT_ONCE + 1)
    assert 1144.0 == pytest.approx(board.snapshot.decision.users_until)
    held = holds_of(board)["bob"]
    assert 1000.0 == held.since
    assert held.reason.startswith("2 new producer ids too many: 50 per PT1H are allowed, 550 at")


def test_a_hold_ends_with_the_throttle_time() -> None:
    """After it the bucket is at nothing, and the next id holds anew."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock)
    opens(watch, "bob", AT_ONCE + 1)
    clock.now = 1072.1
    board.update(lambda memory: memory)
    assert {} == board.snapshot.decision.users
    watch.seen("bob", 10_000)
    assert {"bob": 0.0} == board.snapshot.decision.users


def test_a_quota_that_is_put_counts_at_once() -> None:
    """Twice as much is waited for half as long; without a limit nobody is held."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock)
    opens(watch, "bob", AT_ONCE + 2)

    def put(quota: ProducerIdQuota) -> None:
        board.update(lambda memory: replace(memory, id_quotas={"bob": quota}))
        assert quota == watch.quota_of("bob").quota

    put(ProducerIdQuota(100))
    assert 1072.0 == pytest.approx(board.snapshot.decision.users_until)
    assert Origin.API is watch.quota_of("bob").origin
    put(ProducerIdQuota(None))
    assert {} == board.snapshot.decision.users


def test_what_the_file_says_is_for_the_user_or_for_all() -> None:
    """And what it no longer says is as it was before."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock, ProducerIdQuota(None))
    watch.set_file({"bob": ProducerIdQuota(1), DEFAULT: ProducerIdQuota(2)})
    opens(watch, "bob", 12)
    opens(watch, "alice", 22)
    assert {"bob"} == set(board.snapshot.decision.users)
    watch.set_file({DEFAULT: ProducerIdQuota(2)})
    watch.seen("alice", 22)
    assert "alice" in board.snapshot.decision.users
    watch.set_file({})
    assert {} == board.snapshot.decision.users


def test_a_hold_that_a_restart_took_over_ends_when_it_said() -> None:
    """The ids of before are forgotten, so nothing that is counted now may end it sooner."""
    clock = FakeClock(1000.0)
    before = Memory(holds={"bob": UserHold(900.0, 1030.0, "of before")})
    board, watch = watching(clock, memory=before)
    watch.seen("bob", 1)
    watch.set_file({})
    assert {"bob": 0.0} == board.snapshot.decision.users
    assert 1030.0 == board.snapshot.decision.users_until
