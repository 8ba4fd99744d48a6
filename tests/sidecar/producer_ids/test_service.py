"""Only users with too many new producer ids are throttled, and for as long as the KIP says."""

import asyncio
from collections.abc import Callable

import pytest

from sidecar.control.board import Board, Listener, PersistedState
from sidecar.producer_ids.retained import NAME, Retained
from sidecar.producer_ids.service import ProducerIdWatch, user_throttles_of
from sidecar.quotas.entities import DEFAULT
from sidecar.quotas.producer_ids.id_counts import ProducerIdSettings
from sidecar.quotas.producer_ids.id_quotas import Origin, ProducerIdQuota, ProducerIdQuotas
from sidecar.throttle.decision import Source, VolumeLimit
from sidecar.throttle.limits import MinAvailableBytes
from sidecar.throttle.memory import Memory
from sidecar.throttle.rules import Rules
from sidecar.throttle.user_throttles import UserThrottle
from tests.sidecar.throttle.build import FakeClock

FIFTY = ProducerIdQuota(50)
AT_ONCE = 550
"""11 windows of 50."""


LONGEST_S = 3600.0


def watching(
    clock: Callable[[], float],
    quota: ProducerIdQuota = FIFTY,
    memory: Memory | None = None,
    *,
    listener: Listener = lambda *_: None,
    file: ProducerIdQuotas | None = None,
    window_s: int = 3600,
    unread: str = "",
) -> tuple[Board, ProducerIdWatch]:
    factors = VolumeLimit(Rules(MinAvailableBytes(30), 120.0), fallback=1.0)
    restored = PersistedState(memory or Memory(), 1.0, Source.FALLBACK, 0.0)
    board = Board(factors, clock, restored=restored, listeners=(listener,), unread=unread)
    settings = ProducerIdSettings(window_size_s=window_s, most_throttle_s=LONGEST_S)
    watch = ProducerIdWatch(board, Retained(board), settings, quota, cleanup_s=60.0, file=file)
    return board, watch


def throttled_until(board: Board) -> dict[str, float]:
    return {user: each.ends_at for user, each in user_throttles_of(board).items()}


def put(watch: ProducerIdWatch, **quotas: float | None) -> None:
    """An operator's quotas over HTTP, in force when the request is answered."""
    new: ProducerIdQuotas = {user: ProducerIdQuota(rate) for user, rate in quotas.items()}
    watch.put({**watch.put_quotas, **new})
    assert {user: watch.quota_of(user).quota for user in quotas} == new


def opens(watch: ProducerIdWatch, user: str, count: int, first: int = 0) -> None:
    for producer_id in range(first, first + count):
        watch.seen(user, producer_id)


def test_a_user_is_throttled_from_the_first_id_too_many_and_no_other_user_is() -> None:
    """The module's example: 72 s for each id beyond 550 at once; ids seen before are free."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock)
    opens(watch, "bob", AT_ONCE)
    opens(watch, "bob", AT_ONCE)
    opens(watch, "alice", 5)
    assert {} == board.snapshot.decision.users
    watch.seen("bob", AT_ONCE)
    assert {"bob": 0.0} == board.snapshot.decision.users
    assert 1072.0 == board.snapshot.decision.changes_after
    watch.seen("bob", AT_ONCE + 1)
    watch.review()
    assert 1144.0 == pytest.approx(board.snapshot.decision.changes_after)
    bob = user_throttles_of(board)["bob"]
    assert 1000.0 == bob.since
    assert bob.reason.startswith("2 new producer ids too many: 50 per PT1H are allowed, 550 at")


def test_a_user_throttle_ends_with_the_throttle_time() -> None:
    """Then the bucket is empty, and the next id throttles anew."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock)
    opens(watch, "bob", AT_ONCE + 1)
    clock.now = 1072.1
    board.update(lambda memory: memory)
    assert {} == board.snapshot.decision.users
    watch.seen("bob", 10_000)
    assert {"bob": 0.0} == board.snapshot.decision.users


def test_a_quota_that_is_put_counts_at_once() -> None:
    """With twice as much the wait is half as long; without a limit nobody is throttled."""
    board, watch = watching(FakeClock(1000.0))
    opens(watch, "bob", AT_ONCE + 2)
    put(watch, bob=100)
    assert {"bob": 1072.0} == pytest.approx(throttled_until(board))
    assert Origin.API is watch.quota_of("bob").origin
    put(watch, bob=None)
    assert {} == board.snapshot.decision.users


def test_a_lower_quota_throttles_for_no_longer_than_the_longest_hold() -> None:
    """Bob has an hour to wait at 50 per hour; at 5 these tokens would take 10 hours."""
    board, watch = watching(FakeClock(1000.0))
    opens(watch, "bob", 2 * AT_ONCE)
    for rate in (5.0, 0.05):
        put(watch, bob=rate)
        assert {"bob": 1000.0 + LONGEST_S} == pytest.approx(throttled_until(board))


def test_what_the_file_says_is_for_the_user_or_for_all() -> None:
    """A quota that the file has no more is as it was before."""
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


def test_after_a_restart_the_tokens_are_those_that_the_throttle_takes() -> None:
    """Otherwise the metrics would say that bob is not throttled, and the alert would end."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock)
    opens(watch, "bob", AT_ONCE + 2)
    watch.review()
    clock.now += 36.0
    board, watch = watching(clock, memory=board.snapshot.memory)
    for _ in range(2):
        (status,) = watch.statuses()
        assert ("bob", 50.0, 108_000) == (status.user, status.limit, status.throttle_ms)
        assert -1.5 == pytest.approx(status.tokens)
        watch.seen("bob", 10_000)
    put(watch, bob=100)
    (status,) = watch.statuses()
    assert (549.0, 0) == (status.tokens, status.throttle_ms)
    clock.now += 109.0
    board, watch = watching(clock, memory=board.snapshot.memory)
    assert () == watch.statuses()


def test_a_flood_of_ids_is_published_once_a_second() -> None:
    """A decision about 12,000 volumes takes milliseconds: no id and no user has its own."""
    clock, published = FakeClock(1000.0), list[float]()
    board, watch = watching(clock, listener=lambda *_: published.append(clock.now))
    for user in map(str, range(20)):
        opens(watch, user, AT_ONCE + 20)
    assert 20 == len(published)
    watch.review()
    assert 21 == len(published)
    assert {str(user): 1000.0 + 20 * 72 for user in range(20)} == pytest.approx(
        throttled_until(board)
    )
    watch.review()
    assert 21 == len(published)
    put(watch, **{str(user): None for user in range(20)})
    assert 23 == len(published), "the operator's word, and its consequence"
    assert {} == throttled_until(board)


def test_a_user_throttle_that_is_about_to_end_is_longer_at_once() -> None:
    """Otherwise the user would be released until the next review."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock)
    opens(watch, "bob", AT_ONCE + 1)
    clock.now = 1070.5
    watch.seen("bob", AT_ONCE + 1)
    assert {"bob": 1144.0} == pytest.approx(throttled_until(board), abs=0.01)


def throttled_before(ends_at: float, since: float = 900.0) -> Memory:
    return Memory(user_throttles={("bob", NAME): UserThrottle(since, ends_at, "of before", NAME)})


def test_a_user_throttle_that_a_restart_took_over_ends_at_its_time() -> None:
    """The ids of before are forgotten, so nothing that is counted now may end it sooner."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock, memory=throttled_before(1230.0))
    opens(watch, "bob", AT_ONCE + 1)
    watch.set_file({"alice": ProducerIdQuota(1)})
    watch.review()
    assert {"bob": 1230.0} == throttled_until(board)
    clock.now = 1230.5
    watch.review()
    assert {} == throttled_until(board)
    assert {} == board.snapshot.memory.user_throttles


def test_what_is_counted_after_a_restart_can_make_it_longer() -> None:
    """Three ids too many are 216 s, and the reason is theirs; before that it is the old one."""
    board, watch = watching(FakeClock(1000.0), memory=throttled_before(1100.0))
    watch.review()
    assert {"bob": UserThrottle(900.0, 1100.0, "of before", NAME)} == user_throttles_of(board)
    opens(watch, "bob", AT_ONCE + 3)
    watch.review()
    assert {"bob": 1216.0} == pytest.approx(throttled_until(board))
    assert user_throttles_of(board)["bob"].reason.startswith("3 new producer ids too many")


@pytest.mark.parametrize("rate", [None, 51.0])
def test_an_operator_can_end_a_user_throttle_that_was_taken_over(rate: float | None) -> None:
    """A larger quota ends it at once; with one that is as large or smaller it continues."""
    board, watch = watching(FakeClock(1000.0), memory=throttled_before(1900.0))
    put(watch, bob=50)
    put(watch, bob=7)
    assert {"bob": 1900.0} == throttled_until(board)
    put(watch, bob=rate)
    assert {} == throttled_until(board)


@pytest.mark.parametrize("rate", [None, 51.0])
def test_a_user_throttle_of_a_state_that_was_read_late_is_taken_over(rate: float | None) -> None:
    """The disk hung at the start; the throttle continues, and an operator can end it."""
    board, watch = watching(FakeClock(1000.0), unread="the disk hangs")
    board.take_over(PersistedState(throttled_before(1900.0), 1.0, Source.FALLBACK, 0.0))
    watch.review()
    assert {"bob": 1900.0} == throttled_until(board)
    put(watch, bob=rate)
    assert {} == throttled_until(board)


def test_a_quota_that_is_gone_at_the_start_ends_it() -> None:
    """It ends if the quota left the file while the sidecar was down, and continues otherwise."""
    said: ProducerIdQuotas = {"bob": FIFTY}
    for file, expected in ((said, {"bob": 1900.0}), (None, {})):
        board, watch = watching(
            FakeClock(1000.0), ProducerIdQuota(None), throttled_before(1900.0), file=file
        )
        watch.review()
        assert expected == throttled_until(board)


def test_no_throttle_outlives_the_longest_after_a_restart() -> None:
    """The machine's clock was set back by a day: what would end tomorrow ends in an hour."""
    board, watch = watching(FakeClock(1000.0), memory=throttled_before(1000.0 + 86_400.0))
    opens(watch, "bob", 1)
    watch.review()
    expected = UserThrottle(900.0, 1000.0 + LONGEST_S, "of before", NAME)
    assert {"bob": expected} == user_throttles_of(board)


def test_a_quota_that_is_put_right_after_the_start_finds_nobody_throttled() -> None:
    """There was none at the start, so no quota is the reason of an earlier throttle."""
    board, watch = watching(FakeClock(1000.0), ProducerIdQuota(None), throttled_before(1900.0))
    put(watch, bob=50)
    assert {} == throttled_until(board)


@pytest.mark.looptime
async def test_time_passes_by_itself() -> None:
    """Quotas that are put count without new ids, throttles grow, and absent users are forgotten."""
    loop = asyncio.get_running_loop()
    board, watch = watching(loop.time, memory=throttled_before(loop.time() + 86_400.0, loop.time()))
    task = asyncio.create_task(watch.run())
    await asyncio.sleep(0.1)
    assert {"bob": pytest.approx(LONGEST_S)} == throttled_until(board)
    opens(watch, "eve", AT_ONCE + 2)
    await asyncio.sleep(1.1)
    assert 144.1 == pytest.approx(throttled_until(board)["eve"])
    none: ProducerIdQuotas = dict.fromkeys(("bob", "eve"), ProducerIdQuota(None))
    watch.put(none)
    await asyncio.sleep(1.1)
    assert {} == throttled_until(board)
    await stopped(task)


@pytest.mark.looptime
async def test_users_who_are_gone_are_forgotten() -> None:
    """That is two minutes after the last id of a window of one; the memory is free for others."""
    _, watch = watching(asyncio.get_running_loop().time, window_s=60)
    task = asyncio.create_task(watch.run())
    opens(watch, "bob", 3)
    await asyncio.sleep(50)
    assert 0 < watch.filter_bytes
    await asyncio.sleep(71)
    assert 0 == watch.filter_bytes
    await stopped(task)


async def stopped(task: asyncio.Task[None]) -> None:
    """The service runs until it is cancelled."""
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def test_a_part_of_an_id_too_many_is_reported_as_one() -> None:
    """Some of a token had come back: the sentence never says that 0 ids are too many."""
    clock = FakeClock(1000.0)
    board, watch = watching(clock)
    opens(watch, "bob", AT_ONCE)
    clock.now = 1040.0
    watch.seen("bob", AT_ONCE)
    assert user_throttles_of(board)["bob"].reason.startswith("1 new producer ids too many")
