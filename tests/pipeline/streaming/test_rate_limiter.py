"""Logs that are read up to the same time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from sidecar.pipeline.streaming.rate_limiter import Unread, ends_in_step

LINE = 10
"""Bytes."""


@dataclass(frozen=True)
class Lines:
    """Lines of ``LINE`` bytes, by their times; None stands for one without a time."""

    times: Sequence[int | None]

    def line_from(self, at: int, end: int) -> int:
        return min(end, -(-at // LINE) * LINE)

    def time_ms(self, at: int, end: int) -> int | None:
        lines = range(-(-at // LINE), -(-end // LINE))
        return next((time for line in lines if (time := self.times[line]) is not None), None)


def unread(read: int = 0, **logs: Sequence[int | None]) -> list[Unread]:
    return [
        Unread(name, read * LINE, len(times) * LINE, Lines(times)) for name, times in logs.items()
    ]


def in_lines(ends: Mapping[str, int]) -> dict[str, int]:
    assert all(end % LINE == 0 for end in ends.values())
    return {name: end // LINE for name, end in ends.items()}


def test_all_is_read_when_it_is_little() -> None:
    """The times don't matter then."""
    assert {"a": 2, "b": 1} == in_lines(ends_in_step(unread(a=[1, 9], b=[5]), 3 * LINE))
    assert {"a": 2, "b": 1} == in_lines(ends_in_step(unread(a=[1, 9], b=[5]), None))


def test_a_log_with_few_lines_waits_for_one_with_many() -> None:
    """The module's example is met: the share of the busy one sets the time."""
    busy, idle = range(0, 1000, 1), range(0, 1000, 10)
    ends = in_lines(ends_in_step(unread(busy=busy, idle=idle), 200 * LINE))
    assert {"busy": 101, "idle": 11} == ends


def test_a_log_that_begins_later_waits_and_has_no_share() -> None:
    """The first log has the whole batch."""
    ends = in_lines(ends_in_step(unread(later=range(500, 600), first=range(100)), 50 * LINE))
    assert {"first": 51, "later": 0} == ends


def test_the_time_of_the_next_log_ends_a_batch() -> None:
    """Up to there it needs no share; beyond it, it would."""
    ends = in_lines(ends_in_step(unread(first=range(100), later=range(20, 120)), 30 * LINE))
    assert {"first": 21, "later": 1} == ends


def test_lines_of_one_time_are_read_together() -> None:
    """They may be more than a batch is to have: else nothing would ever be read."""
    assert {"a": 50, "b": 1} == in_lines(ends_in_step(unread(a=[7] * 50 + [8], b=[7, 9]), 3 * LINE))


def test_a_line_out_of_order_does_not_stop_it() -> None:
    """The time is never before the first line's."""
    logs = unread(a=[5, 1, 9, 9, 9, 9], b=[5, 1, 9, 9, 9, 9])
    assert {"a": 2, "b": 2} == in_lines(ends_in_step(logs, 2 * LINE))
    old = [5, 9, 9, 9, 1, 9, 9, 9, 9, 9]
    assert {"a": 1} == in_lines(ends_in_step(unread(a=old), 4 * LINE))


def test_lines_without_a_time_are_read_by_their_share() -> None:
    """They are late for nothing."""
    ends = in_lines(ends_in_step(unread(a=[None] * 100, b=range(100)), 20 * LINE))
    assert {"a": 10, "b": 21} == ends


@given(
    logs=st.lists(
        st.tuples(st.integers(0, 1000), st.lists(st.integers(0, 20), min_size=1, max_size=60)),
        min_size=1,
        max_size=6,
    ),
    most=st.integers(1, 100),
)
def test_batch_by_batch_all_is_read_and_no_log_runs_ahead(
    logs: list[tuple[int, list[int]]], most: int
) -> None:
    """No line is read that is newer than one that is left for a later batch."""
    times = {}
    for name, (begin, steps) in enumerate(logs):
        at = begin
        times[str(name)] = [at := at + step for step in steps]
    read = dict.fromkeys(times, 0)
    while any(read[name] < len(times[name]) for name in times):
        left = [
            Unread(name, read[name] * LINE, len(times[name]) * LINE, Lines(times[name]))
            for name in times
            if read[name] < len(times[name])
        ]
        ends = in_lines(ends_in_step(left, most * LINE))
        assert any(ends[one.key] > read[one.key] for one in left)
        read |= ends
        newest = max(times[name][read[name] - 1] for name in times if read[name])
        rest = [times[name][read[name]] for name in times if read[name] < len(times[name])]
        assert newest <= min(rest, default=newest)
