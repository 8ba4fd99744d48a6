"""Reads a request's headers: preconditions, preferences, media types.

If-None-Match (RFC 9110, 13.1.2) compares weakly: ``W/"a"`` matches ``"a"``, and ``*`` matches every
tag. Of Prefer (RFC 7240), the first ``wait=10`` counts, quoted or not. Other preferences, and those
that can't be parsed, are ignored, as the RFC requires.

Example: ``Prefer: respond-async, wait="5"; foo=bar`` prefers a wait of 5 s.
"""

import re
from typing import Final

_ENTITY_TAG: Final = re.compile(r'(?:W/)?"([^"]*)"')

_ELEMENT: Final = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+')
"""One element of a comma-separated list; commas in quotes do not separate."""

_WAIT: Final = re.compile(
    r'\s*wait\s*=\s*("?)([0-9]{1,99})\1\s*(?:;.*)?', re.IGNORECASE | re.DOTALL
)
_NAMES_WAIT: Final = re.compile(r"\s*wait\s*(?:[=;]|$)", re.IGNORECASE)

_LONGEST: Final = 1000
"""The most characters of a header that are parsed. A reader needs a hundred at most."""


def matches(if_none_match: str, etag: str) -> bool:
    """Whether a reader already has the entity tag (without its quotes)."""
    if if_none_match.strip() == "*":
        return True
    return etag in _ENTITY_TAG.findall(if_none_match)


def preferred_wait_s(prefer: str) -> int | None:
    """Return how many seconds the reader would wait; None without a preference."""
    for element in _ELEMENT.findall(prefer[:_LONGEST]):
        if _NAMES_WAIT.match(element):
            wait = _WAIT.fullmatch(element)
            return int(wait[2]) if wait else None
    return None


def prefers_text(accept: str) -> bool:
    """Whether text/plain is preferred to application/json; with equal quality it is not."""
    ranges = [_media_range(part) for part in accept[:_LONGEST].split(",")]
    return _quality(ranges, "text/plain", "text/*") > _quality(
        ranges, "application/json", "application/*"
    )


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, min(1.0, max(0.0, float(parameter[2:])))
            except ValueError:
                return name, 0.0
    return name, 1.0


def _quality(ranges: list[tuple[str, float]], exact: str, family: str) -> float:
    """Return the quality of the most specific range."""
    for name in (exact, family, "*/*"):
        for media_range, quality in ranges:
            if media_range == name:
                return quality
    return 0.0
