"""What every test needs."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from looptime._internal import plugin as looptime

# How many examples property tests draw: few in every run, many by --hypothesis-profile=thorough
# (make test-all). A test whose examples are dear takes a part of it: tests/support/examples.py.
# On a busy machine drawing and running are slow, whatever is drawn; each test has its own timeout.
for profile, drawn in (("fast", 20), ("thorough", 500)):
    settings.register_profile(
        profile,
        max_examples=drawn,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("fast")

# Where the environment forbids bytecode, each worker would rewrite all asserts anew, and each
# command that a test starts would compile all of sidecar/: half of a run's time.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# looptime asks for the current event loop before each test, and for a sync test that comes first
# asyncio would make one that nobody closes. Once one was set, even to None, it makes none.
asyncio.set_event_loop(None)

# looptime looks through all names of pytest-asyncio at each fixture of each test, which takes a
# quarter of the time of a test that does little. The result depends only on the fixture's module
# and name.
_should_patch = looptime._should_patch
_patched: dict[tuple[str, str], bool] = {}


def _remembered(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> bool:
    key = fixturedef.func.__module__, fixturedef.argname
    if key not in _patched:
        _patched[key] = _should_patch(fixturedef, request)
    return _patched[key]


looptime._should_patch = _remembered

# Who starts the tests in a shell's background hands an ignored SIGINT down to every process that
# the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes seconds first, so that at the end no process waits for another's last test.

    Tests on brokers keep their order, which goes by the clusters that they share.
    """
    items.sort(key=lambda item: not any(map(item.get_closest_marker, ("broker", "slow", "rare"))))


def pytest_collection_finish() -> None:
    """Leaves what importing all tests made out of every later garbage collection.

    The collector scans a million objects, half a second long, again and again.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Else the interpreter's end passes over that, and DuckDB's binding reports leaks."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    """Puts back what ``sidecar.logs.set_up`` changes.

    A command that sets logging up in a test's process would else silence every later ``caplog``.
    """
    root = logging.getLogger()
    handlers = root.handlers[:]
    names = ("", "sidecar", "aiokafka", "uvicorn")
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(capture=False)
