"""Sizes and durations: as people write them, and ISO 8601 strictly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.formats.quantities import (
    LARGEST_SIZE,
    LONGEST_S,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)

UNITS = {"kB": 1000, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15} | {
    f"{letter}{ending}": 1024**power
    for power, letter in enumerate("KMGTP", 1)
    for ending in ("i", "iB")
}


class TestSizes:
    @pytest.mark.parametrize(
        ("count", "text"),
        [
            (0, "0"),
            (10_000_000_000, "10000000000"),
            (1, "+1"),
            (512, "512B"),
            (10 << 30, "10Gi"),
            (10**10, "10GB"),
            (500 << 20, "500Mi"),
            (1_500_000_000_000, "1.5TB"),
            (38_200_000, "38.2 MB"),
            (LARGEST_SIZE, str(LARGEST_SIZE)),
        ],
    )
    def test_a_size_is_whole_bytes(self, count: int, text: str) -> None:
        """It is bytes, or a number with a unit, perhaps after a blank, as sizes are printed."""
        assert count == parse_size(text)

    @pytest.mark.parametrize(("unit", "factor"), UNITS.items())
    def test_every_unit(self, unit: str, factor: int) -> None:
        """A fraction of it is exact, never a float's."""
        assert 3 * factor == parse_size(f"3{unit}")
        assert factor // 8 == parse_size(f"0.125{unit}")

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("10G", "'10G' may mean 10GB or 10Gi: write one of the two"),
            ("10M", "'10M' may mean 10MB or 10Mi: write one of the two"),
            ("5m", "'5m' may mean 5MB or 5Mi: write one of the two"),
            ("1.5k", "'1.5k' may mean 1.5kB or 1.5Ki: write one of the two"),
            ("10gb", "'10gb' has its unit in the wrong case: write 10GB"),
            ("1KB", "'1KB' has its unit in the wrong case: write 1kB"),
            ("10gi", "'10gi' has its unit in the wrong case: write 10Gi"),
            ("10GIB", "'10GIB' has its unit in the wrong case: write 10GiB"),
            ("10h", "'10h' has no unit of a size: write one of kB, MB, GB, TB, PB, Ki, Mi, Gi,"),
            ("", "'' is not a size such as 10Gi, 10GB or 10000000000 (bytes)"),
            ("1e309", "'1e309' is not a size such as"),
            ("1,000", "'1,000' is not a size such as"),
            ("1_000", "'1_000' is not a size such as"),
            ("10GB\n", "is not a size such as"),
            (" 10GB", "is not a size such as"),
            ("GB", "is not a size such as"),
            ("\u0661GB", "is not a size such as"),
            (".5GB", "is not a size such as"),
            ("nan", "is not a size such as"),
            ("9" * 41, "is not a size such as"),
            ("-1", "'-1' must be > 0 and at most 9223372036854775807 bytes"),
            ("-1GB", "'-1GB' must be > 0 and at most"),
            (str(2**63), "must be > 0 and at most"),
            ("9" * 40 + "PB", "must be > 0 and at most"),
            ("1.0", "'1.0' is not a whole number of bytes"),
            ("1.5B", "'1.5B' is not a whole number of bytes"),
            ("1.0001kB", "'1.0001kB' is not a whole number of bytes"),
        ],
    )
    def test_another_text_says_what_to_write(self, text: str, sentence: str) -> None:
        """What has two readings is refused with both; nothing is guessed or rounded."""
        with pytest.raises(ValueError, match=r"^'") as refusal:
            parse_size(text)
        assert sentence in str(refusal.value)

    @pytest.mark.parametrize(
        ("count", "text"),
        [(0, "0"), (999, "999"), (1001, "1001"), (10**10, "10GB"), (10 << 30, "10Gi")],
    )
    def test_a_size_is_printed_in_its_largest_whole_unit(self, count: int, text: str) -> None:
        """It is exact."""
        assert text == format_size(count)

    @given(
        st.integers(0, LARGEST_SIZE)
        | st.builds(
            lambda count, factor: count * factor,
            st.integers(0, 999),
            st.sampled_from([*UNITS.values()]),
        )
    )
    def test_what_is_printed_is_read_again(self, count: int) -> None:
        """Any number of bytes survives."""
        assert count == parse_size(format_size(count))

    @given(st.text(max_size=12) | st.from_regex(r"-?[0-9.]{1,6} ?[A-Za-z]{0,3}", fullmatch=True))
    def test_a_text_is_read_or_refused_in_one_line(self, text: str) -> None:
        """Nothing else comes out, and what is read is in range."""
        sentence = "read"
        try:
            assert 0 <= parse_size(text) <= LARGEST_SIZE
        except ValueError as error:
            sentence = str(error)
        assert sentence.isprintable()


class TestDurations:
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
            (0.0, "0s"),
            (30.0, "30s"),
            (300.0, "5m"),
            (3600.0, "1h"),
            (172_800.0, "2d"),
            (5400.0, "1h30m"),
            (5400.0, "1.5h"),
            (0.25, "250ms"),
            (93_784.5, "1d2h3m4s500ms"),
            (0.1, "0.1s"),
            (LONGEST_S, "36500d"),
        ],
    )
    def test_fixed_lengths_are_seconds(self, seconds: float, text: str) -> None:
        """Weeks, days, time parts and decimal seconds are taken, in both ways of writing."""
        assert seconds == parse_duration(text)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "P",
            "PT",
            "P1DT",
            "+PT1M",
            "PT-1M",
            "PT1M\n",
            " PT1M",
            "PT1M ",
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
            "30m1h",
            "1h1h",
            "1.5h30m",
            "1h30",
            "1h 30m",
            "1y",
            "10min",
            "5GB",
            "+5m",
            "1e309",
            "\u0665m",
            "30s\n",
        ],
    )
    def test_everything_else_is_refused(self, text: str) -> None:
        """Years, empty parts, another order, other scripts' digits and a trailing newline are."""
        with pytest.raises(
            ValueError, match="is not a duration such as 30s, 5m, 1h30m, 2d or PT30M"
        ):
            parse_duration(text)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("60", "'60' has no unit: write 60s, 60m or 60h"),
            ("1.5", "'1.5' has no unit: write 1.5s, 1.5m or 1.5h"),
            (
                "10M",
                "'10M' may mean minutes or months: write 10m for minutes; months have no fixed",
            ),
            ("5M", "'5M' may mean minutes or months: write 5m for minutes; months have no fixed"),
            ("1H30M", "'1H30M' has its letters in the wrong case: write 1h30m"),
            ("30S", "'30S' has its letters in the wrong case: write 30s"),
            ("pt1m", "'pt1m' has its letters in the wrong case: write PT1M"),
            ("-5m", "'-5m' is negative: a duration is at least 0s"),
            ("-PT1M", "'-PT1M' is negative: a duration is at least 0s"),
        ],
    )
    def test_a_mistake_that_is_known_says_what_to_write(self, text: str, sentence: str) -> None:
        """A missing unit, another case, a sign, and minutes that may be months have their own."""
        with pytest.raises(ValueError, match=r"^'") as refusal:
            parse_duration(text)
        assert str(refusal.value).startswith(sentence)

    @pytest.mark.parametrize(("text", "meant"), [("P5M", "PT5M"), ("P90M", "PT90M")])
    def test_months_ask_for_minutes(self, text: str, meant: str) -> None:
        """P5M is answered with the question whether PT5M was meant."""
        with pytest.raises(ValueError, match=f"was {meant} meant\\?"):
            parse_duration(text)

    @pytest.mark.parametrize(
        "text",
        ["P36500DT1S", "P999999999999999D", f"PT{'9' * 400}S", "36500d1s", "9999999999999h"],
    )
    def test_more_than_a_century_is_refused(self, text: str) -> None:
        """Beyond it a point in time can't be written; digits without end don't overflow."""
        with pytest.raises(ValueError, match="longer than 100 years"):
            parse_duration(text)

    @pytest.mark.parametrize("text", ["PT0.0000001S", "0.0000001s", "0.0001ms"])
    def test_less_than_a_microsecond_is_not_nothing(self, text: str) -> None:
        """A duration that would be rounded to PT0S, which disables, is refused."""
        with pytest.raises(ValueError, match="shorter than a microsecond"):
            parse_duration(text)

    def test_a_long_text_is_cut_in_the_message(self) -> None:
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
    def test_a_duration_is_written_as_a_person_would(self, text: str, seconds: float) -> None:
        """What is shown of a duration is short and can be put back into a file."""
        assert text == format_duration(seconds)

    @given(st.integers(min_value=0, max_value=10**12))
    def test_what_is_written_is_read_again(self, micros: int) -> None:
        """Writing and reading a whole number of microseconds changes nothing."""
        seconds = micros / 1e6
        assert seconds == pytest.approx(parse_duration(format_duration(seconds)), abs=1e-9)

    @given(*(st.integers(0, 99) for _ in range(4)))
    def test_both_ways_of_writing_agree(self, days: int, hours: int, minutes: int, s: int) -> None:
        """1d2h3m4s is P1DT2H3M4S."""
        iso = f"P{days}DT{hours}H{minutes}M{s}S"
        assert parse_duration(iso) == parse_duration(f"{days}d{hours}h{minutes}m{s}s")

    @given(st.text(max_size=12) | st.from_regex(r"[PT0-9.,dhmsDHMS]{1,10}", fullmatch=True))
    def test_a_text_is_read_or_refused_in_one_line(self, text: str) -> None:
        """Nothing else comes out, and what is read is in range."""
        sentence = "read"
        try:
            assert 0.0 <= parse_duration(text) <= LONGEST_S
        except ValueError as error:
            sentence = str(error)
        assert sentence.isprintable()
