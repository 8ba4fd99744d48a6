"""Virtual time for tests whose two ends speak over sockets in one event loop."""

import pytest

VIRTUAL_TIME = pytest.mark.looptime(noop_cycles=300)
"""The clock moves once nothing arrived in 300 polls of the sockets: some 5 ms, so that what the
other end wrote is there before a deadline passes, even where the kernel delivers it late."""
