"""The capability that makes room on volumes (SIDECAR_RELIEF_FILE)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from sidecar.control.board import Board
from sidecar.control.capability import Block, Build, Capability, Services, Task
from sidecar.control.known_cluster import ask_known_cluster
from sidecar.kafka.broker_configs import describe_broker_configs
from sidecar.kafka.expendable import ExpendableTopics
from sidecar.relief.classes_file import ClassesFile
from sidecar.relief.journal import Journal
from sidecar.relief.metrics import relief_metrics
from sidecar.relief.routes import add_relief
from sidecar.relief.service import Relief, amount
from sidecar.settings import KafkaAdmin, Settings
from sidecar.throttle.relief import left_out_order
from sidecar.volumes import Failure

_DEFAULTS_MS: Final = {
    "log.retention.check.interval.ms": 300_000,
    "log.segment.delete.delay.ms": 60_000,
}
_MARGIN_S: Final = 10.0
_NAMED: Final = 3


def prepare(settings: Settings) -> Build:
    """Return the function that builds the capability.

    Raises:
        SettingsError: the file with the classes can't be used.
    """
    path, admin = settings.relief_file, settings.kafka_admin
    polls = settings.check_interval_s > 0.0 and settings.factor_source is None
    if path is None or settings.relief_mode == "off" or admin is None or not polls:
        return lambda _services: ReliefCapability()
    file = ClassesFile(path)
    file.load()

    def build(services: Services) -> Capability:
        board = services.board
        reach = _Reach(admin, board)
        # In observe mode, nothing changes in Kafka.
        deletes = settings.relief_mode == "delete" and settings.mode == "enforce"
        folder = settings.state_file.parent / "relief" if deletes and settings.state_file else None
        relief = Relief(
            board,
            services.wall,
            ExpendableTopics(admin, board.now, cluster_id=lambda: board.snapshot.memory.cluster_id),
            file,
            "dry-run" if folder is None else "delete",
            settings.relief_step,
            settings.check_interval_s,
            services.is_first,
            reach.settle_s,
            Journal(folder),
        )
        return ReliefCapability(relief, reach)

    return build


class _Reach:
    """How to reach brokers for their configuration, with the credentials of now."""

    def __init__(self, admin: KafkaAdmin, board: Board) -> None:
        self.admin = admin
        self._board = board

    async def settle_s(self) -> float:
        """How long freeing takes, seconds; by Kafka's defaults if that can't be read."""
        answer = await ask_known_cluster(
            self.admin, self._board, describe_broker_configs, None, list(_DEFAULTS_MS)
        )
        found = {} if isinstance(answer, Failure) else answer
        known = [each for each in found.values() if not isinstance(each, Failure)] or [{}]
        longest = (
            max(int(each.get(name) or default) for each in known)
            for name, default in _DEFAULTS_MS.items()
        )
        return sum(longest) / 1000 + _MARGIN_S


class ReliefCapability(Capability):
    """Makes room; without classes it does nothing.

    Attributes:
        relief: what makes room; None without classes.
    """

    name = "relief"
    leave_s = 1.0

    def __init__(self, relief: Relief | None = None, reach: _Reach | None = None) -> None:
        self.relief = relief
        self._reach = reach

    def tasks(self) -> Mapping[str, Task]:
        """Makes room, and follows the file."""
        relief = self.relief
        if relief is None:
            return {}
        return {"relief": relief.run, "relief file": lambda: relief.file.run(relief.change)}

    def add_routes(self, app: FastAPI) -> None:
        """The route; without classes the mode is off."""
        add_relief(app, self.relief)

    def metrics(self) -> Iterator[Metric]:
        """The metrics of deletions."""
        return relief_metrics(self.relief)

    def observed(self, observation: object) -> None:  # noqa: ARG002 - the protocol's
        """Note how fast volumes fill."""
        if self.relief is not None:
            self.relief.observe()

    def block(self) -> Block | None:
        """What is or would be deleted; None without classes."""
        if self.relief is None:
            return None
        return Block("Room on volumes", tuple(_sentences(self.relief)), "/v1/relief")

    async def leave(self, timeout_s: float) -> None:  # noqa: ARG002 - the protocol's
        """Close all connections."""
        if self.relief is not None:
            await self.relief.topics.close()

    def reload(self, settings: Settings, *, redial: bool = True) -> Callable[[], None]:
        """Use new addresses and credentials from the next request on."""
        reach, admin = self._reach, settings.kafka_admin
        if self.relief is None or reach is None or admin is None:
            return lambda: None
        apply_to_pool = self.relief.topics.reload(admin, redial=redial)

        def apply() -> None:
            apply_to_pool()
            reach.admin = admin

        return apply


def _sentences(relief: Relief) -> Iterator[str]:
    planned = relief.planned
    what = "Deletes" if relief.deletes else "Dry run: would delete"
    if planned.deletions:
        yield f"{what} {amount(planned)}: {planned.why}."
    elif planned.is_short:
        yield f"A volume needs room, and nothing may be deleted: {planned.why}."
    else:
        yield f"Nothing is deleted now: {planned.why}."
    if relief.left_out:
        left = sorted(relief.left_out.items(), key=left_out_order)[:_NAMED]
        yield f"Left out: {'; '.join(f'{topic} ({why})' for topic, why in left)}."
    if failure := relief.failure or relief.file.problem:
        yield f"No room can be made: {failure}."
