"""KIP-936: ids in use per user, which users must wait, and what is forgotten and dropped."""

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.quotas.entities import DEFAULT, Default
from sidecar.quotas.producer_ids.id_counts import Dropped, ProducerIds, ProducerIdSettings, Seen
from sidecar.quotas.producer_ids.seen_ids import FilterTerms
from sidecar.quotas.producer_ids.user_ids import ProducerIdStatus

HOUR_MS = 3_600_000
# So rarely wrong that no test sees it; test_seen_ids.py is about how often it is.
SURE = ProducerIdSettings(false_positive_rate=1e-9)
LAYER_BYTES = SURE.filters.layer_bytes(0)


def producer_ids(limit: float | None = None, settings: ProducerIdSettings = SURE) -> ProducerIds:
    """No id was seen; everybody has the same limit."""
    ids = ProducerIds(settings)
    ids.set_limits({DEFAULT: limit})
    return ids


def record(ids: ProducerIds, user: str, producer_ids: range, now_ms: int) -> int:
    """Records some ids, and returns the wait after the last."""
    return [ids.record(user, each, now_ms).throttle_ms for each in producer_ids][-1]


def test_defaults_are_the_kips() -> None:
    """There are 11 windows of an hour."""
    settings = ProducerIdSettings()
    assert (11, 3600) == (settings.window_num, settings.window_size_s)
    assert FilterTerms(HOUR_MS, 1000, 0.01) == settings.filters


def test_docstring_example() -> None:
    """At 50 an hour 550 ids pass at once and the 551st waits 72 s."""
    ids = producer_ids(50)
    assert 0 == record(ids, "ann", range(550), 0)
    assert Seen(is_new=True, throttle_ms=72_000) == ids.record("ann", 550, 0)
    assert 72_000 == ids.throttle_ms("ann", 0)


def test_a_seen_id_reports_the_wait_too() -> None:
    """While a user is throttled, each of the user's ids reports the wait."""
    ids = producer_ids(50)
    record(ids, "ann", range(551), 0)
    assert Seen(is_new=False, throttle_ms=62_000) == ids.record("ann", 550, 10_000)


def test_long_lived_producers_use_a_token_per_window() -> None:
    """5 producers that send every minute are new once an hour, and 5 an hour is enough."""
    ids = producer_ids(5)
    new_at = []
    for minute in range(24 * 60):
        for producer_id in range(5):
            seen = ids.record("ann", producer_id, minute * 60_000)
            new_at += [minute] * seen.is_new
            assert 0 == seen.throttle_ms
    # The last minute that a filter is read in is the one that its window ends at.
    assert [minute for minute in range(0, 24 * 60, 61) for _ in range(5)] == new_at


def test_users_do_not_share() -> None:
    """The same id is new for each user, and only who has too many is throttled."""
    ids = producer_ids(50)
    assert 0 < record(ids, "ann", range(600), 0)
    assert Seen(is_new=True, throttle_ms=0) == ids.record("bob", 0, 0)
    assert (50 * 72_000, 0) == (ids.throttle_ms("ann", 0), ids.throttle_ms("bob", 0))


def test_no_id_is_ignored() -> None:
    """-1 is what a batch without an id carries: it makes nobody known, and the wait is reported."""
    ids = producer_ids(50)
    assert Seen(is_new=False, throttle_ms=0) == ids.record("ann", -1, 0)
    assert 0 == ids.users
    record(ids, "ann", range(551), 0)
    assert Seen(is_new=False, throttle_ms=72_000) == ids.record("ann", -1, 0)
    assert 72_000 == ids.throttle_ms("ann", 0)


def test_without_a_limit_nobody_waits() -> None:
    """Ids are counted and their rate is reported, as the KIP's default has no limit."""
    ids = ProducerIds(ProducerIdSettings())
    assert 0 == record(ids, "ann", range(1000), 0)
    status = ids.status("ann", 0)
    assert status is not None
    assert (None, None, 0) == (status.limit, status.tokens, status.throttle_ms)
    assert 100.0 == pytest.approx(status.rate, abs=1)


@pytest.mark.parametrize(
    ("user", "limit"), [("ann", 5.0), ("free", None), ("bob", 50.0), (str(DEFAULT), 50.0)]
)
def test_limit_is_the_users_or_the_default(user: str, limit: float | None) -> None:
    """A user's own limit, also that there is none, comes before the default."""
    ids = producer_ids()
    ids.set_limits({"ann": 5, "free": None, DEFAULT: 50})
    assert limit == ids.limit(user)
    ids.record(user, 1, 0)
    status = ids.status(user, 0)
    assert status is not None
    assert limit == status.limit


def test_new_limits_apply_at_once() -> None:
    """Who had no limit starts with all tokens; who waits, waits less when the limit is raised."""
    ids = producer_ids()
    record(ids, "ann", range(1000), 0)
    ids.set_limits({"ann": 50})
    assert 72_000 == record(ids, "ann", range(2000, 2551), 0)
    ids.set_limits({"ann": 100})
    assert 36_000 == ids.throttle_ms("ann", 0)
    ids.set_limits({})
    assert 0 == ids.throttle_ms("ann", 0)


def test_the_mapping_is_copied() -> None:
    """What a caller does with the mapping afterwards changes no limit."""
    limits: dict[str | Default, float | None] = {"ann": 50.0}
    ids = producer_ids()
    ids.set_limits(limits)
    limits["ann"] = 1.0
    assert 50.0 == ids.limit("ann")


@pytest.mark.parametrize("limit", [0.0, -1.0, float("inf"), float("nan")])
def test_limits_that_cannot_be(limit: float) -> None:
    """They are refused by the user's name, and the limits before stay in force."""
    ids = producer_ids(50)
    with pytest.raises(ValueError, match="ann: "):
        ids.set_limits({"ann": limit})
    assert 50.0 == ids.limit("ann")


def test_time_that_goes_back_stands_still() -> None:
    """An earlier time brings no token and takes none, and what was seen stays seen."""
    ids = producer_ids(50)
    record(ids, "ann", range(551), HOUR_MS)
    for now_ms in (0, HOUR_MS // 2, -HOUR_MS, HOUR_MS):
        assert Seen(is_new=False, throttle_ms=72_000) == ids.record("ann", 3, now_ms)
        assert 72_000 == ids.throttle_ms("ann", now_ms)
        ids.tick(now_ms)
    assert 71_000 == ids.throttle_ms("ann", HOUR_MS + 1000)


def test_window_that_is_skipped_wholly() -> None:
    """After days everything is as at the start: ids are new and the bucket is full."""
    ids = producer_ids(50)
    record(ids, "ann", range(551), 0)
    later_ms = 72 * HOUR_MS
    assert Seen(is_new=True, throttle_ms=0) == ids.record("ann", 3, later_ms)
    status = ids.status("ann", later_ms)
    assert status is not None
    assert 549.0 == status.tokens


def test_silent_user_is_forgotten() -> None:
    """A user without a limit is, as soon as no filter is live; nothing is left of the user."""
    ids = producer_ids()
    ids.record("ann", 1, 0)
    assert None is not ids.status("ann", HOUR_MS)
    assert (1, LAYER_BYTES) == (ids.users, ids.filter_bytes)
    assert None is ids.status("ann", HOUR_MS + 1)
    assert (0, 0) == (ids.users, ids.filter_bytes)


def test_user_who_is_throttled_is_not_forgotten() -> None:
    """Filters are freed at their end; the wait continues, and the burst is not granted twice."""
    ids = producer_ids(50)
    record(ids, "ann", range(650), 0)
    ids.tick(HOUR_MS + 1)
    assert (1, 0) == (ids.users, ids.filter_bytes)
    assert 100 * 72_000 - HOUR_MS - 1 == ids.throttle_ms("ann", HOUR_MS + 1)
    ids.tick(12 * HOUR_MS)
    assert 1 == ids.users
    ids.tick(13 * HOUR_MS + 1)
    assert 0 == ids.users


def test_tick_knows_new_limits() -> None:
    """A user who was throttled by a limit that was removed need not be remembered."""
    ids = producer_ids(50)
    record(ids, "ann", range(551), 0)
    ids.set_limits({})
    ids.tick(HOUR_MS + 1)
    assert 0 == ids.users


def test_tick_frees_what_nobody_asks_for() -> None:
    """Filters of users who never come back are freed, and those of others are not."""
    ids = producer_ids()
    ids.record("ann", 1, 0)
    ids.record("bob", 1, HOUR_MS)
    ids.tick(HOUR_MS + 1)
    assert (1, LAYER_BYTES) == (ids.users, ids.filter_bytes)
    assert ["bob"] == [status.user for status in ids.statuses(HOUR_MS + 1)]


def test_statuses() -> None:
    """All users by name, with their numbers; those who are gone are not there."""
    ids = producer_ids()
    ids.set_limits({"ann": 50})
    record(ids, "bob", range(20), 0)
    record(ids, "ann", range(551), 0)
    ann = ProducerIdStatus("ann", 50.0, 55.1, -1.0, 72_000, LAYER_BYTES)
    bob = ProducerIdStatus("bob", None, 2.0, None, 0, LAYER_BYTES)
    message = [replace(status, rate=round(status.rate, 9)) for status in ids.statuses(0)]
    assert [ann, bob] == message
    assert ["ann"] == [status.user for status in ids.statuses(HOUR_MS + 1)]
    assert () == producer_ids().statuses(0)
    assert None is ids.status("eve", 0)


def test_users_are_bounded() -> None:
    """A user beyond the bound is dropped and counted, and not throttled."""
    ids = producer_ids(0.001, replace(SURE, most_users=2))
    for user in ("ann", "bob", "eve", "eve"):
        ids.record(user, 1, 0)
    assert (2, Dropped(2, 0)) == (ids.users, ids.dropped)
    assert Seen(is_new=False, throttle_ms=0) == ids.record("eve", 2, 0)
    assert 0 == ids.throttle_ms("eve", 0)


def test_names_are_bounded_together() -> None:
    """A document with the names of all throttled users is never longer than callbacks read."""
    ids = producer_ids(0.001)
    for number in range(4000):
        ids.record(f"\x01{number:04d}{'x' * 988}", 1, 0)
    assert (1000, Dropped(3000, 0)) == (ids.users, ids.dropped)
    ids.tick(12 * 1000 * HOUR_MS)
    assert ids.record("é" * 1000, 1, 12 * 1000 * HOUR_MS).is_new


@pytest.mark.parametrize("name", ["", "x" * 1025, "\U0001f600" * 513])
def test_who_has_no_name_that_callbacks_read_is_dropped(name: str) -> None:
    """One such name would make brokers refuse the factors of all; they count as Java does."""
    ids = producer_ids(0.001)
    for number in range(100):
        assert Seen(is_new=False, throttle_ms=0) == ids.record(name, number, 0)
    assert Dropped(100, 0) == ids.dropped
    assert ids.record("\U0001f600" * 512, 1, 0).is_new


def test_who_is_gone_makes_room() -> None:
    """A new user takes the place of one who has nothing left, without a tick."""
    ids = producer_ids(None, replace(SURE, most_users=1))
    ids.record("ann", 1, 0)
    assert not ids.record("bob", 1, HOUR_MS).is_new
    assert ids.record("bob", 1, HOUR_MS + 1000).is_new
    assert ["bob"] == [status.user for status in ids.statuses(HOUR_MS + 1000)]


def test_room_is_sought_once_a_second() -> None:
    """A flood of users does not go through all others for each of its ids."""
    ids = producer_ids(None, replace(SURE, most_users=1))
    ids.record("ann", 1, 0)
    assert not ids.record("bob", 1, HOUR_MS - 100).is_new
    assert not ids.record("bob", 1, HOUR_MS + 1).is_new
    assert ids.record("bob", 1, HOUR_MS + 900).is_new


@pytest.mark.parametrize(
    "full",
    [replace(SURE, most_users=5), ProducerIdSettings(expected_ids=100, most_bytes=2000)],
    ids=["users", "bytes"],
)
def test_users_without_a_limit_make_room_for_one_with_a_limit(full: ProducerIdSettings) -> None:
    """They are forgotten, also if they looked for room themselves a moment ago."""
    ids = ProducerIds(full)
    ids.set_limits({"etl": 5})
    for number in range(20):
        ids.record(f"app{number}", number, 0)
    assert record(ids, "etl", range(56), 0) > 0
    assert ["etl"] == [status.user for status in ids.statuses(0)]
    assert sum(status.filter_bytes for status in ids.statuses(0)) == ids.filter_bytes


def test_users_with_a_limit_make_no_room_for_others() -> None:
    """Neither for one with a limit, nor for one without."""
    ids = producer_ids(5, replace(SURE, most_users=2))
    ids.set_limits({DEFAULT: 5, "free": None})
    for user in ("ann", "bob", "eve", "free"):
        ids.record(user, 1, 0)
    assert ["ann", "bob"] == [status.user for status in ids.statuses(0)]


def test_memory_is_bounded() -> None:
    """New ids beyond the room are counted as dropped; nobody is charged for them."""
    settings = ProducerIdSettings(expected_ids=100, most_bytes=2000)
    ids = producer_ids(None, settings)
    new = sum(ids.record("ann", each, 0).is_new for each in range(5000))
    assert ids.filter_bytes <= 2000
    # Two layers, of 100 and 400.
    assert 500 == new
    assert 4500 == pytest.approx(ids.dropped.of_known_users, rel=0.01)
    ids.set_limits({DEFAULT: 0.001})
    assert 0 == record(ids, "ann", range(6000, 7000), 0)


def test_users_are_small() -> None:
    """Beside the filters, whose memory is not Python's, a user takes less than 2.5 kB."""
    users = 100
    ids = producer_ids(50)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for user in range(users):
        record(ids, f"user-{user}", range(5), 0)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert users == ids.users
    assert after - before < users * 2500


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"window_num": 0}, "a quota window"),
        ({"window_size_s": 0}, "a quota window"),
        ({"false_positive_rate": 1.0}, "rate of 1.0"),
        ({"expected_ids": 0}, "0 expected ids"),
        ({"most_users": 0}, "0 users"),
        ({"most_bytes": LAYER_BYTES - 1}, f"no room for one filter of {LAYER_BYTES}$"),
        ({"most_throttle_s": 0.0}, "longest wait of 0.0 s"),
    ],
)
def test_settings_that_cannot_be(changed: dict[str, Any], message: str) -> None:
    """A number that makes no sense is refused by its name."""
    with pytest.raises(ValueError, match=message):
        replace(SURE, **changed)


def test_longest_wait_is_a_setting() -> None:
    """A client that opens ids even while it is throttled waits for the longest wait at most."""
    ids = producer_ids(50, replace(SURE, most_throttle_s=300))
    assert 300_000 == record(ids, "ann", range(5000), 0)
    # A token of theirs comes once in 100 hours.
    few = producer_ids(0.01, replace(SURE, most_throttle_s=300))
    assert 300_000 == record(few, "ann", range(2), 0)
    assert 100_000 == few.throttle_ms("ann", 200_000)


def test_repr_shows_sizes() -> None:
    """It shows users and bytes, not names and ids."""
    ids = producer_ids()
    ids.record("ann", 1, 0)
    assert f"ProducerIds(1 users, {LAYER_BYTES} bytes)" == repr(ids)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]), st.integers(-1, 30), st.integers(-HOUR_MS, 2 * HOUR_MS)
    ),
    max_size=80,
)


@given(steps=_STEPS, limit=st.sampled_from([0.5, 2.0, 50.0]))
def test_nobody_has_more_than_the_limit(steps: list[tuple[str, int, int]], limit: float) -> None:
    """Who opens ids only while not throttled has the burst, the limit per window, and one."""
    ids = producer_ids(limit, replace(SURE, window_num=2))
    counted = {"ann": 0, "bob": 0}
    now_ms = latest_ms = first_ms = 0
    for user, producer_id, passed_ms in steps:
        now_ms += passed_ms
        latest_ms = max(latest_ms, now_ms)
        first_ms = min(first_ms, now_ms)
        if ids.throttle_ms(user, now_ms) == 0:
            counted[user] += ids.record(user, producer_id, now_ms).is_new
        allowed = 2 * limit + (latest_ms - first_ms) / HOUR_MS * limit + 1
        assert counted[user] <= allowed + 1e-6
