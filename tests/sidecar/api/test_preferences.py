"""What the headers of a request ask for, well written or not."""

import pytest

from sidecar.api.preferences import matches, preferred_wait_s, prefers_text


@pytest.mark.parametrize(
    ("if_none_match", "expected"),
    [
        ('"a-1"', True),
        ('W/"a-1"', True),
        ('"b-7", "a-1"', True),
        ('"b-7",W/"a-1" ,"c"', True),
        ("*", True),
        (" * ", True),
        ('"a-10"', False),
        ('"a-1', False),
        ("a-1", False),
        ("", False),
        ('"*"', False),
    ],
)
def test_matches(if_none_match: str, expected: bool) -> None:
    """A tag matches in a list, weak or strong, and the star matches all; no part of one does."""
    assert expected is matches(if_none_match, "a-1")


@pytest.mark.parametrize(
    ("prefer", "expected"),
    [
        ("wait=10", 10),
        ("WAIT = 10", 10),
        ('wait="10"', 10),
        ("wait=0", 0),
        ("respond-async, wait=5", 5),
        ("wait=5; foo=bar, return=minimal", 5),
        ('handling="a, wait=9", wait=3', 3),
        ('x="\\", wait=9", wait=4', 4),
        ("wait=1, wait=2", 1),
        ("wait=soon, wait=2", None),
        ("wait", None),
        ("wait=", None),
        ("wait=-1", None),
        ("wait=1.5", None),
        ("wait=1e3", None),
        ("wait=٣", None),
        ("wait=99999999999999999999", 99999999999999999999),
        ('wait="10', None),
        ("await=10", None),
        ("", None),
        (",,;=", None),
    ],
)
def test_preferred_wait(prefer: str, expected: int | None) -> None:
    """The first wait counts, among other preferences; what is no wait is skipped."""
    assert expected == preferred_wait_s(prefer)


@pytest.mark.timeout(30)
def test_hostile_preferences_cost_little() -> None:
    """64 KiB made to send a careless pattern back and forth are parsed in no time."""
    for hostile in (
        '"\\' * 32_768,
        '"' * 65_536,
        "wait=" + "1" * 65_536,
        " " * 65_536,
        "," * 65_536,
    ):
        assert preferred_wait_s(hostile) is None


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("text/plain", True),
        ("TEXT/Plain; charset=utf-8", True),
        ("text/*", True),
        ("text/plain;q=0.9, application/json;q=0.1", True),
        ("text/plain, */*;q=0.1", True),
        ("*/*", False),
        ("application/json", False),
        ("text/plain, application/json", False),
        ("text/plain;q=0.1, application/*", False),
        ("text/plain;q=0", False),
        ("text/plain;q=oops", False),
        ("text/html, application/xhtml+xml, */*;q=0.8", False),
        ("", False),
    ],
)
def test_prefers_text(accept: str, expected: bool) -> None:
    """Whoever prefers text by the most specific range gets it, everyone else JSON."""
    assert expected is prefers_text(accept)
