"""The protocol between the daemon and its optional parts, the capabilities.

A capability overrides the methods that it needs; every default does nothing. Two things need no
method, because the board owns them:

- a record that the capability keeps over a restart, plain JSON under its name (``Board.retain``),
  which it checks when it is built (``sidecar.state.records``);
- the throttles of users under its name (``Board.throttle_users``).

A capability gets each observation. It can subscribe to the lines of the request log
(``Services.subscribe``). An exception is logged, counted and shown on the status page, and affects
nothing else. A task that fails is started again, after a longer pause each time
(``sidecar.daemon.supervision``).

Example: ``prepare(settings)`` of ``sidecar.history.capability`` checks nothing, and returns the
function that builds the capability. The capability gets observations, has one task and four
metrics, and may take 0.3 s to write its last line.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from sidecar.control.board import Board
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.persistence import Persistence
from sidecar.control.poller import always
from sidecar.control.tokens import Tokens
from sidecar.control.volume_contents import FetchSizes, VolumeContents
from sidecar.peers.addresses import Address
from sidecar.peers.trust import Trust
from sidecar.requestlog.line import Line
from sidecar.requestlog.reader import LogReader
from sidecar.settings import Settings
from sidecar.volumes import Observation

Task = Callable[[], Coroutine[Any, Any, None]]
"""Creates a coroutine that runs until it is cancelled; called again after a failure."""


@dataclass(frozen=True, slots=True)
class Table:
    """A small table.

    Attributes:
        headings: the headings of its columns.
        rows: its rows, each with a cell for each heading.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the status page, as a value.

    Attributes:
        title: its heading.
        sentences: its paragraphs.
        path: the path of the API with more details; "" if there is none.
        table: a table below them; None for none.
    """

    title: str
    sentences: tuple[str, ...]
    path: str = ""
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of the daemon that a capability can use.

    Attributes:
        board: the board; its clock returns steady seconds.
        wall: steady seconds -> epoch seconds of the machine's clock.
        tokens: the tokens for changes over HTTP.
        persist: writes the state now, and returns within about a second whether it is on disk.
        request_log: reads the log of the broker beside this sidecar; None when no file is set.
        failures: guards functions that other parts call.
        is_observer: returns whether this sidecar asks all brokers; otherwise observers do.
        is_first: returns whether this sidecar alone acts on the cluster, as the first of its peers.
        trust: sends requests to other sidecars.
        contents: the contents of volumes; None if no broker is polled.
        fetch_sizes: reads some partitions of brokers; None if no broker is polled.
        followed: returns the addresses of the observers that this sidecar follows.
    """

    board: Board
    wall: Callable[[float], float]
    tokens: Tokens
    persist: Callable[[], Awaitable[Persistence]]
    request_log: LogReader | None
    failures: CapabilityFailures
    is_observer: Callable[[], bool] = always
    is_first: Callable[[], bool] = always
    trust: Trust = field(default_factory=Trust)
    contents: VolumeContents | None = None
    fetch_sizes: FetchSizes | None = None
    followed: Callable[[], Iterable[Address]] = tuple

    def subscribe(
        self, name: str, on_line: Callable[[Line], None], is_needed: Callable[[], bool]
    ) -> bool:
        """Call a capability with each line of the request log. Its exceptions are only logged.

        Args:
            name: the capability's name.
            on_line: called with each valid line; must return at once.
            is_needed: returns whether the log may cause a throttle.

        Returns:
            Whether a log is read at all.
        """
        if self.request_log is None:
            return False

        def guarded(line: Line) -> None:
            try:
                on_line(line)
            except Exception as error:  # noqa: BLE001 - no optional part is worth the daemon
                # A traceback for each line would make the sidecar's log as long as the request log.
                self.failures.failed(name, "request log", error)

        needs = "need of the request log"
        self.request_log.subscribe(
            guarded, lambda: self.failures.call(name, needs, is_needed, False)
        )
        return True


class Capability:
    """An optional part of the daemon.

    Attributes:
        name: the name of its package, used in metrics, on the page and in the log.
        leave_s: the longest time to finish, seconds; after that it is cancelled.
    """

    name: str = ""
    leave_s: float = 0.0

    def tasks(self) -> Mapping[str, Task]:
        """Return its tasks, by name."""
        return {}

    def add_routes(self, app: FastAPI) -> None:
        """Add its routes to the API."""

    def metrics(self) -> Iterable[Metric]:
        """Return its metrics, which exist from the start, also if it is not configured."""
        return ()

    def block(self) -> Block | None:
        """Return its block of the status page; None for no block."""
        return None

    def observed(self, observation: Observation) -> None:
        """Take an observation whose decision is already published; must return at once."""

    def reload(
        self,
        settings: Settings,  # noqa: ARG002 - the protocol's
        *,
        redial: bool = True,  # noqa: ARG002 - the protocol's
    ) -> Callable[[], None]:
        """Check new credentials. It may be called in a thread.

        Args:
            settings: the settings with the new credentials.
            redial: whether to make new connections at once; otherwise those that work stay.

        Returns:
            A function that applies them, called when all other parts have accepted theirs.

        Raises:
            SettingsError: the credentials can't be used; nothing has changed.
        """
        return lambda: None

    async def leave(self, timeout_s: float) -> None:
        """Finish before the daemon ends; the tasks are already cancelled."""


Build = Callable[[Services], Capability]
"""Builds a checked capability; raises SidecarError if the daemon can't start."""

Prepare = Callable[[Settings], Build]
"""Checks whether a capability can start, or raises SettingsError. It needs no daemon, so that the
command ``check`` finds the same problems as ``run``."""
