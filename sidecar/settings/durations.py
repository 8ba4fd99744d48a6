"""ISO 8601 durations of a fixed length, strictly.

Weeks, days, hours, minutes and seconds; only seconds may have decimals. No sign, no months or years
(their length isn't fixed), no empty ``P`` or ``PT``, nothing before or after. ``isodate`` alone is
too generous for a setting: it also takes signs, dates and a trailing newline.

Example: ``PT1M`` is 60.0 s, ``P1DT0.5S`` is 86,400.5 s; ``P5M`` (five months) is refused with the
question whether ``PT5M`` was meant.
"""

import re
from datetime import timedelta

import isodate

# [0-9] because \d also matches digits of other scripts, and fullmatch because $ also matches
# before a trailing newline.
_FORM = re.compile(
    r"P(?=[0-9T])(?:[0-9]+W)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:[.,][0-9]+)?S)?)?"
)
_DATE_MINUTES = re.compile(r"P([0-9]+M)")

LONGEST_S = timedelta(days=36_500).total_seconds()
"""A hundred years, in seconds: beyond it, points in time can't be written any more."""


def parse_duration(text: str) -> float:
    """The seconds that a duration's text stands for, >= 0.0 and <= LONGEST_S.

    Raises:
        ValueError: with a sentence for a person, if the text is not such a duration.
    """
    if not _FORM.fullmatch(text):
        raise ValueError(_why_not(text))
    try:
        seconds = float(isodate.parse_duration(text).total_seconds())
    except OverflowError:
        seconds = float("inf")
    if seconds > LONGEST_S:
        raise ValueError(f"{_shown(text)} is longer than 100 years")
    if seconds == 0.0 and re.search("[1-9]", text):
        # It must not become PT0S, which disables.
        raise ValueError(f"{_shown(text)} is shorter than a microsecond")
    return seconds


def format_duration(seconds: float) -> str:
    """As a person writes it, without days: 5,400.5 is ``PT1H30M0.5S``, 0 is ``PT0S``."""
    minutes, rest = divmod(round(seconds * 1e6), 60 * 10**6)
    parts = zip((*divmod(minutes, 60), rest), "HMS", strict=True)
    text = "".join(f"{_decimal(n) if unit == 'S' else n}{unit}" for n, unit in parts if n)
    return f"PT{text or '0S'}"


def _decimal(micros: int) -> str:
    return f"{micros / 1e6:.6f}".rstrip("0").rstrip(".")


def _why_not(text: str) -> str:
    months = _DATE_MINUTES.fullmatch(text)
    if months:
        return f"{text!r} is months, which have no fixed length: was PT{months[1]} meant?"
    return f"{_shown(text)} is not an ISO 8601 duration such as PT30S, PT5M or P1DT12H"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")
