"""A failure of an optional part is logged once, counted, shown, and goes no further."""

import logging
from functools import partial

import pytest

from sidecar.control.capability_failures import CapabilityFailures, Failing


def fails(error: Exception) -> int:
    raise error


def logged(caplog: pytest.LogCaptureFixture) -> list[bool]:
    """Whether each line has a traceback."""
    return [record.exc_info is not None for record in caplog.records]


def test_each_failure_is_counted_and_each_new_kind_has_one_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It fails three times alike, then otherwise, then works, then fails as at first."""
    failures = CapabilityFailures(["history"])
    bad = partial(fails, RecursionError("secret"))
    with caplog.at_level(logging.INFO):
        assert [7, 7, 7] == [failures.call("history", "block", bad, 7) for _ in range(3)]
        assert [True] == logged(caplog)
        failures.call("history", "block", partial(fails, KeyError("x")), 7)
        assert [True, True] == logged(caplog)
        assert [Failing("history", "block", "KeyError")] == [*failures.failing]
        assert 5 == failures.call("history", "block", lambda: 5, 7)
        assert not failures.failing
        failures.call("history", "block", bad, 7)
    assert [True, True, False, True] == logged(caplog)
    assert 5 == failures.count("history")


def test_a_part_that_works_does_not_hide_that_another_fails() -> None:
    """The page shows each by itself."""
    failures = CapabilityFailures(["a", "b"])
    failures.call("a", "block", partial(fails, ValueError()), None)
    failures.call("a", "observation", lambda: None, None)
    failures.call("b", "block", lambda: None, None)
    assert (Failing("a", "block", "ValueError"),) == failures.failing
