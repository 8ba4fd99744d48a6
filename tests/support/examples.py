"""Fewer examples for tests whose examples are dear: of hypothesis, and of a list.

``mostly_slow`` leaves make check the first ones, and ``mostly_rare`` make test.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest
from hypothesis import settings

_Case = TypeVar("_Case")

assert settings.default is not None
_dear = max(5, settings.default.max_examples // 10)

DEAR = settings(max_examples=_dear)
"""A tenth of the profile's, and 5 at least: where one example takes up to 100 ms."""


def mostly_slow(
    cases: Iterable[_Case], quick: int = 1, slow: int | None = None
) -> Sequence[object]:
    """The cases of ``pytest.mark.parametrize``, of which all but the first ``quick`` are slow.

    Those after the next ``slow`` are rare.
    """
    return [
        case if number < quick else _marked(case, rare=slow is not None and number >= quick + slow)
        for number, case in enumerate(cases)
    ]


def mostly_rare(cases: Iterable[_Case], kept: int = 1) -> Sequence[object]:
    """The cases of a slow test, of which all but the first ``kept`` are rare."""
    return mostly_slow(cases, kept, 0)


def _marked(case: object, *, rare: bool) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.rare if rare else pytest.mark.slow)
