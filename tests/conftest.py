"""What every test needs."""

import asyncio
import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# On a busy machine drawing and running are slow, whatever is drawn; each test has its own timeout.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# looptime asks for the current event loop before each test, and for a sync test that comes first
# asyncio would make one that nobody closes. Once one was set, even to None, it makes none.
asyncio.set_event_loop(None)

# Who starts the tests in a shell's background hands an ignored SIGINT down to every process that
# the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
