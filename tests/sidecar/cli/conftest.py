"""The environment of all commands, and sidecars with prepared answers for those that ask one."""

import os
from collections.abc import Iterator

import pytest

from tests.support.background import Canned, serving


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has no setting of the machine that runs the tests, and a terminal of 80 columns."""
    for variable in [name for name in os.environ if name.startswith("SIDECAR_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def canned() -> Iterator[Canned]:
    with serving(Canned()) as server:
        yield server


@pytest.fixture
def other() -> Iterator[Canned]:
    with serving(Canned()) as server:
        yield server
