"""Fewer examples for tests whose examples are dear: of hypothesis, and of a list.

``mostly_slow`` leaves the first ones to make check, and make test runs them all.
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


def mostly_slow(cases: Iterable[_Case], quick: int = 1) -> Sequence[object]:
    """The cases of ``pytest.mark.parametrize``, of which all but the first ``quick`` are slow."""
    return [
        case
        if number < quick
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for number, case in enumerate(cases)
    ]
