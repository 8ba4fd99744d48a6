"""The parts of a machine that a daemon uses besides its loop: clocks, disk, random ids, addresses.

The event loop provides connections, name lookups, threads and timers. So the simulation of
tests/simulation runs the same code with another loop and another machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sidecar.api.server import Listen, listen_on
from sidecar.clock import SteadyClock
from sidecar.control.board import random_id
from sidecar.state.disk import Disk, MachineDisk


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine; the defaults are those of this machine.

    Attributes:
        clock: steady and wall time.
        disk: the disk for the state.
        start_id: makes an id that no earlier start had.
        listen: creates the sockets of the API.
    """

    clock: SteadyClock = field(default_factory=SteadyClock)
    disk: Disk = field(default_factory=MachineDisk)
    start_id: Callable[[], str] = random_id
    listen: Listen = listen_on
