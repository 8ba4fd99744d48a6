"""What a daemon takes from its machine besides the loop: clocks, disk, chance and addresses.

Connections, names of hosts, threads and the time of waits are the event loop's. So a daemon in
another world, such as the simulation of tests/simulation, is the same code with another loop and
another machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sidecar.api.server import Listen, listen_on
from sidecar.clock import SteadyClock
from sidecar.control.board import random_id
from sidecar.state.disk import Disk, MachineDisk


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine; this one, unless something else is set.

    Attributes:
        clock: steady and wall time.
        disk: what the state lies on.
        start_id: makes an id that no start had before.
        listen: makes the sockets of the API.
    """

    clock: SteadyClock = field(default_factory=SteadyClock)
    disk: Disk = field(default_factory=MachineDisk)
    start_id: Callable[[], str] = random_id
    listen: Listen = listen_on
