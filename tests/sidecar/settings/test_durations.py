"""Durations: the strict form of ISO 8601."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.settings.durations import LONGEST_S, format_duration, parse_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "PT0S"),
        (0.0, "P0D"),
        (60.0, "PT1M"),
        (300.0, "PT5M"),
        (0.1, "PT0.1S"),
        (0.5, "PT0,5S"),
        (5400.0, "PT1H30M"),
        (90_061.5, "P1DT1H1M1.5S"),
        (604_800.0, "P1W"),
        (691_200.0, "P1W1D"),
        (1e-6, "PT0.000001S"),
        (LONGEST_S, "P36500D"),
    ],
)
def test_fixed_lengths_are_seconds(seconds: float, text: str) -> None:
    """Weeks, days, time parts and decimal seconds are taken."""
    assert seconds == parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "5M",
        "60",
        "-PT1M",
        "+PT1M",
        "PT-1M",
        "PT1M\n",
        " PT1M",
        "PT1M ",
        "pt1m",
        "P1Y",
        "P1Y2M",
        "PT1.5M",
        "PT1.5H",
        "P0.5D",
        "PT.5S",
        "PT5.S",
        "PT1S1M",
        "PT1M1M",
        "P1D1W",
        "PT\u0665M",
        "PT1H/PT2H",
        "P0001-01-01T00:00:00",
        "P00000001T000000",
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    """Signs, months, empty parts, other scripts' digits, dates and a trailing newline aren't."""
    with pytest.raises(ValueError, match="is not an ISO 8601 duration such as"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "meant"), [("P5M", "PT5M"), ("P90M", "PT90M")])
def test_months_ask_for_minutes(text: str, meant: str) -> None:
    """P5M is answered with the question whether PT5M was meant."""
    with pytest.raises(ValueError, match=f"was {meant} meant\\?"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["P36500DT1S", "P999999999999999D", f"PT{'9' * 400}S"])
def test_more_than_a_century_is_refused(text: str) -> None:
    """Beyond it a point in time can't be written; digits without end don't overflow."""
    with pytest.raises(ValueError, match="longer than 100 years"):
        parse_duration(text)


def test_less_than_a_microsecond_is_not_nothing() -> None:
    """A duration that would be rounded to PT0S, which disables, is refused."""
    with pytest.raises(ValueError, match="shorter than a microsecond"):
        parse_duration("PT0.0000001S")


def test_a_long_text_is_cut_in_the_message() -> None:
    """A message stays one readable line."""
    with pytest.raises(ValueError, match=r"^'x{40}\.\.\.' is not"):
        parse_duration("x" * 10_000)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT0S", 0.0),
        ("PT0.5S", 0.5),
        ("PT1M", 60.0),
        ("PT2M30S", 150.0),
        ("PT1H0.25S", 3600.25),
        ("PT24H", 86_400.0),
        ("PT0.000001S", 1e-6),
    ],
)
def test_a_duration_is_written_as_a_person_would(text: str, seconds: float) -> None:
    """What is shown of a duration is short and can be put back into a file."""
    assert text == format_duration(seconds)


@given(st.integers(min_value=0, max_value=10**12))
def test_what_is_written_is_read_again(micros: int) -> None:
    """Writing and reading a whole number of microseconds changes nothing."""
    seconds = micros / 1e6
    assert seconds == pytest.approx(parse_duration(format_duration(seconds)), abs=1e-9)
