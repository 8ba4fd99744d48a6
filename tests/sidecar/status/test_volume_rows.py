"""The volumes' rows: their order, and what a bar shows."""

from sidecar.control.board import Board
from sidecar.status.moments import Now
from sidecar.status.volume_rows import Row, lines_in_bars, rate, volume_rows
from sidecar.throttle.decision import VolumeLimit
from sidecar.throttle.limits import Limit, MinAvailableBytes, MinAvailableRatio
from sidecar.throttle.rules import Rules
from sidecar.throttle.slope import SlopeRules
from sidecar.volumes import Failure, Observation
from tests.sidecar.throttle.build import TIMED_OUT, FakeClock, reading, whole

LIMIT = MinAvailableBytes(10)


def rows(
    *news: Observation | Failure,
    now: float = 0.0,
    first: int = 0,
    count: int = 20,
    limit: MinAvailableBytes = LIMIT,
    stop_line: Limit | None = None,
    soft_limit: Limit | None = None,
) -> tuple[list[Row], int]:
    """The rows after these observations and failed polls."""
    slope = None if soft_limit is None else SlopeRules(soft_limit)
    factors = VolumeLimit(Rules(limit, 300.0, stop_line, slope), 1.0)
    board = Board(factors, FakeClock())
    for each in news:
        if isinstance(each, Failure):
            board.fail(each)
        else:
            board.observe(each)
    moment = Now(now, lambda steady_s: steady_s)
    return volume_rows(board.snapshot, moment, first, count)


def test_docstring_example() -> None:
    """91 of 100 are used under a limit of 10: 91 % of the bar, and the limit at 90 %."""
    (row,), count = rows(whole(0.0, [reading(1, 0.0, {"/d": 9})]))
    assert 1 == count
    assert (91.0, (("limit", 90.0),), True, "9 B", "100 B") == (
        row.used,
        row.lines,
        row.is_bad,
        row.left,
        row.total,
    )
    assert ("violates the limit", "reached", "") == (row.state, row.to_limit, row.fills)


def test_the_stop_line() -> None:
    """It is in the bar, at the limit at most, and the state says who is at or below it."""
    seen = whole(0.0, [reading(1, 0.0, {"/a": 5, "/b": 6, "/c": 50})])
    found, _ = rows(seen, stop_line=MinAvailableBytes(5))
    shown = [(row.state, *row.lines) for row in found]
    lines = (("limit", 90.0), ("stop line", 95.0))
    states = ["violates the stop line", "violates the limit", ""]
    assert [(state, *lines) for state in states] == shown
    at_limit = (lines[0], ("stop line", 90.0))
    assert {at_limit} == {row.lines for row in rows(seen, stop_line=MinAvailableRatio(0.4))[0]}
    assert {lines[:1]} == {row.lines for row in rows(seen)[0]}


def test_the_soft_limit() -> None:
    """It is in the bar where it is above the limit."""
    seen = whole(0.0, [reading(1, 0.0, {"/a": 50})])
    shown = [
        dict(rows(seen, soft_limit=soft)[0][0].lines).get("soft limit")
        for soft in (None, MinAvailableRatio(0.4), LIMIT, MinAvailableBytes(5))
    ]
    assert [None, 60.0, None, None] == shown


def test_what_the_lines_are() -> None:
    """One, two or three; none where nothing is compared."""
    assert [
        "",
        "The line in each bar is the limit: 10 B.",
        "The lines in each bar are the limit, 10 B, and the stop line, 5.0%.",
        "The lines in each bar are the soft limit, 40 B, and the limit, 10 B.",
    ] == [
        lines_in_bars(Rules(None, 300.0)),
        lines_in_bars(Rules(LIMIT, 300.0)),
        lines_in_bars(Rules(LIMIT, 300.0, MinAvailableRatio(0.05))),
        lines_in_bars(Rules(LIMIT, 300.0, slope=SlopeRules(MinAvailableBytes(40)))),
    ]


def test_the_worst_come_first() -> None:
    """Violating volumes are first, the fullest before; then offline, soon full, small ones."""
    before = {"/full": 9, "/fuller": 2, "/soon": 60, "/later": 99, "/offline": 50, "/more": 80}
    after = {"/full": 9, "/fuller": 2, "/soon": 50, "/later": 98, "/less": 30, "/more": 80}
    found, count = rows(
        whole(0.0, [reading(1, 0.0, before)]),
        whole(10.0, [reading(1, 10.0, after, offline=["/offline", "/never"])]),
        now=20.0,
    )
    order = ["/fuller", "/full", "/never", "/offline", "/soon", "/later", "/less", "/more"]
    assert (order, 8) == ([row.log_dir for row in found], count)
    reported = {row.log_dir: (row.fills, row.to_limit) for row in found}
    assert ("fills by 1 B/s", "in 30 s") == reported["/soon"]
    assert ("steady", "") == reported["/more"]
    assert ("", "") == reported["/offline"]


def test_a_log_dir_that_was_never_read() -> None:
    """It has no bar: nothing is known of it but why."""
    (row,), _ = rows(whole(0.0, [reading(1, 0.0, offline=["/d"])]))
    assert (None, "offline", "") == (row.used, row.state, row.left)


def test_a_log_dir_without_sizes_that_is_not_offline() -> None:
    """Its sizes are unreadable, whether or not it was read before."""
    found, _ = rows(
        whole(0.0, [reading(1, 0.0, {"/d": 50})]),
        whole(1.0, [reading(1, 1.0, unreadable=["/d", "/never"])]),
    )
    assert {"sizes unreadable: error 999"} == {row.state for row in found}


def test_a_full_log_dir_that_is_offline_has_the_command_that_forgets_it() -> None:
    """Not one that has room, or is read."""
    found, _ = rows(
        whole(0.0, [reading(1, 0.0, {"/d 1": 9, "/d2": 50, "/d3": 9})]),
        whole(10.0, [reading(1, 10.0, {"/d3": 9}, offline=["/d 1", "/d2"])]),
    )
    assert {
        "/d 1": "throttle-sidecar forget 1 --log-dir '/d 1'",
        "/d2": "",
        "/d3": "",
    } == {row.log_dir: row.forget for row in found}


def test_an_offline_log_dir_below_the_soft_limit_has_the_command_too() -> None:
    """Its last reading slows producers until it is forgotten."""
    found, _ = rows(
        whole(0.0, [reading(1, 0.0, {"/low": 20, "/d": 50})]),
        whole(10.0, [reading(1, 10.0, offline=["/low", "/d"])]),
        soft_limit=MinAvailableBytes(40),
    )
    commands = {"/low": "throttle-sidecar forget 1 --log-dir /low", "/d": ""}
    assert commands == {row.log_dir: row.forget for row in found}


def test_what_a_broker_that_is_gone_left() -> None:
    """Its reading counts, so it is shown, with its age and why."""
    found, _ = rows(
        whole(0.0, [reading(1, 0.0, {"/d": 9})]),
        whole(60.0, [reading(2, 60.0, {"/e": 50})], fenced=[1]),
        now=61.0,
    )
    assert ("violates the limit; the broker is fenced", "61 s ago") == (
        found[0].state,
        found[0].read,
    )
    assert "" == found[1].read


def test_after_a_failed_poll_every_reading_has_its_age() -> None:
    """A time to the limit is computed from what was read then."""
    seen = [whole(at, [reading(1, at, {"/d": 50 - round(at)})]) for at in (0.0, 10.0)]
    (row,), _ = rows(*seen, now=20.0)
    assert ("", "in 20 s") == (row.read, row.to_limit)
    (row,), _ = rows(*seen, TIMED_OUT, now=20.0)
    assert ("10 s ago", "in 20 s") == (row.read, row.to_limit)


def test_the_rate_while_producers_are_throttled() -> None:
    """A request that lands each minute is a byte a second, not a spike and then nothing."""
    seen = [
        whole(float(at), [reading(1, float(at), {"/d": 900 - 60 * (at // 60)}, total=100_000)])
        for at in range(250)
    ]
    (row,), _ = rows(*seen, now=250.0, limit=MinAvailableBytes(1000))
    assert ("fills by 1 B/s", "reached") == (row.fills, row.to_limit)


def test_pages() -> None:
    """Each volume is on one page, in the order of all."""
    seen = whole(0.0, [reading(b, 0.0, {"/d": 100 - b, "/e": 100 - b}) for b in range(25)])
    everything, count = rows(seen, count=100)
    paged = [rows(seen, first=first, count=20)[0] for first in (0, 20, 40, 60)]
    assert (50, everything) == (count, [row for page in paged for row in page])
    assert [20, 20, 10, 0] == [len(page) for page in paged]


def test_a_volume_without_bytes() -> None:
    """A total of 0 is full, and divides nothing."""
    (row,), _ = rows(whole(0.0, [reading(1, 0.0, {"/d": 0}, total=0)]))
    assert (0.0, (("limit", 0.0),), True) == (row.used, row.lines, row.is_bad)


def test_rates() -> None:
    """Words say the rate, with its direction."""
    assert ["", "steady", "fills by 2.5 MB/s", "empties by 10 B/s"] == [
        rate(each) for each in (None, -0.3, 2.5e6, -10.0)
    ]
