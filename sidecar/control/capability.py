"""The protocol between the daemon and its optional parts, the capabilities.

A capability says what it has; every default here does nothing. Two things need no method, since
they lie on the board, where they are decided upon, published and written in one step: what it
retains over a restart, plain JSON under its name (``Board.retain``) that it checks when it is built
(``sidecar.state.records``), and its share of a decision, the throttles under its name
(``Board.throttle_users``). What it hears besides observations it subscribes to: the lines of the
request log (``Services.subscribe``).

Whatever raises is logged, counted and shown on the status page, and goes no further; a task that
fails is restarted, with a longer pause each time (``sidecar.daemon.supervision``).

Example: ``prepare(settings)`` of ``sidecar.history.capability`` checks nothing and gives what
builds the capability; that hears observations, has one task, four metrics, and may take 0.3 s to
write its last line.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from prometheus_client.registry import Collector

from sidecar.control.board import Board
from sidecar.control.capability_failures import CapabilityFailures
from sidecar.control.poller import always
from sidecar.requestlog.line import Line
from sidecar.requestlog.reader import LogReader
from sidecar.settings import Settings
from sidecar.volumes import Observation

Task = Callable[[], Coroutine[Any, Any, None]]
"""Makes what runs until it is cancelled; it is called again after a failure."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the status page, as a value.

    Attributes:
        title: its heading.
        sentences: its paragraphs.
        path: where the API says more; "" for nowhere.
    """

    title: str
    sentences: tuple[str, ...]
    path: str = ""


@dataclass(frozen=True, slots=True)
class Services:
    """What the daemon gives to a capability.

    Attributes:
        board: what is published, and the memory; its clock gives steady seconds.
        wall: steady seconds -> epoch seconds of the machine's clock.
        token: what a change over HTTP needs, read at each request; None refuses every change.
        persist: writes the state now; returns whether it is on disk.
        request_log: reads the log of the broker beside this sidecar; None when no file is set.
        failures: guards what is called from elsewhere.
        is_observer: whether this sidecar asks all brokers; while it does not, others do so for it.
    """

    board: Board
    wall: Callable[[float], float]
    token: Callable[[], str | None]
    persist: Callable[[], Awaitable[bool]]
    request_log: LogReader | None
    failures: CapabilityFailures
    is_observer: Callable[[], bool] = always

    def subscribe(
        self, name: str, on_line: Callable[[Line], None], is_needed: Callable[[], bool]
    ) -> bool:
        """Calls a capability with each line of the request log; what it raises ends nothing.

        Args:
            name: the capability's.
            on_line: is called with each line that can be read; returns at once.
            is_needed: whether somebody may be throttled by what the log reports.

        Returns:
            Whether a log is read at all.
        """
        if self.request_log is None:
            return False

        def guarded(line: Line) -> None:
            try:
                on_line(line)
            except Exception as error:  # noqa: BLE001 - no optional part is worth the daemon
                # It never works again: one traceback each time would be a log as long as that one.
                self.failures.failed(name, "request log", error)

        needs = "need of the request log"
        self.request_log.subscribe(
            guarded, lambda: self.failures.call(name, needs, is_needed, False)
        )
        return True


class Capability:
    """An optional part of the daemon.

    Attributes:
        name: of its package; metrics, page and log call it so.
        leave_s: how long it may take to leave, seconds; what takes longer is cut off.
    """

    name: str = ""
    leave_s: float = 0.0

    def tasks(self) -> Mapping[str, Task]:
        """What it runs, by name."""
        return {}

    def add_routes(self, app: FastAPI) -> None:
        """Adds its routes to the API."""

    def collectors(self) -> Iterable[Collector]:
        """Its metrics, which exist from the start on, whatever is configured."""
        return ()

    def block(self) -> Block | None:
        """What the status page shows of it now; None: nothing."""
        return None

    def observed(self, observation: Observation) -> None:
        """Hears an observation whose decision is published already; returns at once."""

    def reload(self, settings: Settings) -> Callable[[], None]:  # noqa: ARG002 - the protocol's
        """Takes over new credentials.

        Returns:
            What applies them, when all the others have accepted theirs too.

        Raises:
            SettingsError: they can't be used; nothing has changed.
        """
        return _nothing

    async def leave(self, timeout_s: float) -> None:
        """Puts things in order before the daemon ends; its tasks are cancelled by then."""


Build = Callable[[Services], Capability]
"""Builds what was checked before; raises SidecarError where the daemon can't start."""

Prepare = Callable[[Settings], Build]
"""Checks whether a capability can start: raises SettingsError. Needs no daemon, so that the command
``check`` refuses what ``run`` refuses."""


def _nothing() -> None:
    """There is nothing to apply."""
