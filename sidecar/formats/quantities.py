"""Sizes and durations as people write them, and back: ``10Gi``, ``1.5TB``, ``1h30m``, ``PT30M``.

Settings, commands, the API and the pipeline share these functions, so that a text means the same
everywhere. An ambiguous text is refused with a message that names both meanings.

- Size: a whole number of bytes, or a number with a unit of 1,000 (``kB``, ``MB``, ``GB``, ``TB``,
  ``PB``) or of 1,024 (``Ki`` to ``Pi``, and ``KiB`` to ``PiB``). ``10G`` is refused: Kubernetes and
  the JVM read it differently.
- Duration: numbers with ``d``, ``h``, ``m``, ``s`` or ``ms``, the longest unit first, where only
  the last number may have decimals; or ISO 8601 of a fixed length, so without months and years.

Example: ``10Gi`` is 10,737,418,240 bytes and ``10GB`` 10,000,000,000; ``1h30m`` and ``PT1H30M`` are
5,400 s; ``10M`` is refused as a size (10MB or 10Mi) and as a duration (minutes or months).
"""

import re
from typing import Final

LARGEST_SIZE: Final = 2**63 - 1
"""Java's largest long, in bytes; a broker reports it for a file system without an end."""

LONGEST_S: Final = 36_500 * 86_400.0
"""A hundred years, in seconds. Later points in time could not be formatted."""

_DECIMAL: Final[dict[str, int]] = {
    unit: 1000**power for power, unit in enumerate(("kB", "MB", "GB", "TB", "PB"), 1)
}
_BINARY: Final[dict[str, int]] = {
    unit: 1024**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)
}
_SIZE_UNITS: Final = {"": 1, "B": 1} | _DECIMAL | _BINARY | {f"{u}B": n for u, n in _BINARY.items()}
_PRINTED: Final = sorted((_DECIMAL | _BINARY).items(), key=lambda item: -item[1])
_MICROS: Final = {"d": 86_400 * 10**6, "h": 3600 * 10**6, "m": 60 * 10**6, "s": 10**6, "ms": 1000}
"""Microseconds in each unit of a duration, the longest first."""

# [0-9] because \d also matches digits of other scripts, and fullmatch because $ also matches
# before a trailing newline.
_SIZE: Final = re.compile(r"([+-]?)([0-9]{1,40}(?:\.[0-9]{1,40})?) ?([A-Za-z]*)")
_PART: Final = r"([0-9]{1,40}(?:\.[0-9]{1,40})?)(ms|[dhms])"
_PARTS: Final = re.compile(f"(?:{_PART})+")
_ISO: Final = re.compile(
    r"P(?=[0-9T])(?:[0-9]+W)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:[.,][0-9]+)?S)?)?"
)


def parse_size(text: str) -> int:
    """Read a size, in bytes, 0 to ``LARGEST_SIZE``.

    Raises:
        ValueError: with a sentence for a person, if the text is not such a size.
    """
    match = _SIZE.fullmatch(text)
    if match is None or match[3] not in _SIZE_UNITS:
        raise ValueError(_why_no_size(text, match))
    # Integers throughout, because a float would round sizes above 2^53.
    whole, _, decimals = match[2].partition(".")
    scale: int = 10 ** len(decimals)
    count, rest = divmod(int(whole + decimals) * _SIZE_UNITS[match[3]], scale)
    if (match[1] == "-" and count) or count > LARGEST_SIZE:
        raise ValueError(f"{_shown(text)} must be > 0 and at most {LARGEST_SIZE} bytes")
    if rest or (decimals and not match[3]):
        raise ValueError(f"{_shown(text)} is not a whole number of bytes")
    return count


def format_size(count: int) -> str:
    """Write bytes exactly, in the largest unit that needs no decimals: 10GB, 1536Ki, 1001."""
    return next(
        (f"{count // size}{unit}" for unit, size in _PRINTED if count and count % size == 0),
        str(count),
    )


def parse_duration(text: str) -> float:
    """Read a duration, in seconds, 0.0 to ``LONGEST_S``.

    Raises:
        ValueError: with a sentence for a person, if the text is not such a duration.
    """
    if _ISO.fullmatch(text):
        # Imported here, since few commands read such a duration.
        import isodate  # noqa: PLC0415

        try:
            seconds = float(isodate.parse_duration(text).total_seconds())
        except OverflowError:
            seconds = float("inf")
    else:
        micros = _parts_sum(text)
        if micros is None:
            raise ValueError(_why_no_duration(text))
        seconds = float("inf") if micros > LONGEST_S * 10**6 else micros / 1e6
    if seconds > LONGEST_S:
        raise ValueError(f"{_shown(text)} is longer than 100 years")
    if seconds == 0.0 and re.search("[1-9]", text):
        # A tiny duration must not become 0 s, which disables the sidecar.
        raise ValueError(f"{_shown(text)} is shorter than a microsecond")
    return seconds


def format_duration(seconds: float) -> str:
    """Write seconds as ISO 8601, without days: 5,400.5 is ``PT1H30M0.5S``, 0 is ``PT0S``."""
    minutes, rest = divmod(round(seconds * 1e6), 60 * 10**6)
    parts = zip((*divmod(minutes, 60), rest), "HMS", strict=True)
    text = "".join(f"{_seconds(n) if unit == 'S' else n}{unit}" for n, unit in parts if n)
    return f"PT{text or '0S'}"


def _seconds(micros: int) -> str:
    return f"{micros / 1e6:.6f}".rstrip("0").rstrip(".")


def _parts_sum(text: str) -> int | None:
    """Read ``1h30m`` in microseconds, rounded; None if the text has another form."""
    parts = re.findall(_PART, text) if _PARTS.fullmatch(text) else []
    units = [unit for _, unit in parts]
    in_order = [unit for unit in _MICROS if unit in units]
    if not parts or units != in_order or any("." in number for number, _ in parts[:-1]):
        return None
    total = 0
    for number, unit in parts:
        whole, _, decimals = number.partition(".")
        scale: int = 10 ** len(decimals)
        total += (int(whole + decimals) * _MICROS[unit] + scale // 2) // scale
    return total


def _why_no_size(text: str, match: re.Match[str] | None) -> str:
    if match is None:
        return f"{_shown(text)} is not a size such as 10Gi, 10GB or 10000000000 (bytes)"
    sign, number, unit = match.groups()
    folded = {known.casefold(): known for known in _SIZE_UNITS}
    both = [folded.get(f"{unit.casefold()}{ending}") for ending in "bi"]
    if unit and len(unit) == 1 and all(both):
        readings = " or ".join(f"{number}{each}" for each in both)
        return f"{_shown(text)} may mean {readings}: write one of the two"
    if unit.casefold() in folded:
        right = f"{sign}{number}{folded[unit.casefold()]}"
        return f"{_shown(text)} has its unit in the wrong case: write {right}"
    return f"{_shown(text)} has no unit of a size: write one of {', '.join(_DECIMAL | _BINARY)}"


def _why_no_duration(text: str) -> str:
    shown = _shown(text)
    if text.startswith("-"):
        return f"{shown} is negative: a duration is at least 0s"
    if months := re.fullmatch(r"P([0-9]+M)", text):
        return f"{shown} is months, which have no fixed length: was PT{months[1]} meant?"
    if number := re.fullmatch(r"([0-9]{1,20})M", text):
        return (
            f"{shown} may mean minutes or months: write {number[1]}m for minutes;"
            " months have no fixed length"
        )
    if re.fullmatch(r"[0-9]{1,20}(?:\.[0-9]{1,20})?", text):
        return f"{shown} has no unit: write {text}s, {text}m or {text}h"
    for other in (text.lower(), text.upper()):
        if _parts_sum(other) is not None or _ISO.fullmatch(other):
            return f"{shown} has its letters in the wrong case: write {other}"
    return f"{shown} is not a duration such as 30s, 5m, 1h30m, 2d or PT30M"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")
