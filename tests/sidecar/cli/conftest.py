"""Sidecars with prepared answers, for the commands that ask one."""

from collections.abc import Iterator

import pytest

from tests.support.background import Canned, serving


@pytest.fixture
def canned() -> Iterator[Canned]:
    with serving(Canned()) as server:
        yield server


@pytest.fixture
def other() -> Iterator[Canned]:
    with serving(Canned()) as server:
        yield server
