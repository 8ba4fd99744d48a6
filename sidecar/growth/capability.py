"""The capability that tells who fills the volumes near or past a limit."""

from collections.abc import Iterator, Mapping

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from sidecar.api.answers import Wall
from sidecar.control.capability import Build, Capability, Services, Task
from sidecar.growth.metrics import growth_metrics
from sidecar.growth.routes import add_growth
from sidecar.growth.watch import GrowthWatch
from sidecar.requestlog.line import Line
from sidecar.settings import Settings


def prepare(settings: Settings) -> Build:
    """Return the function that builds the capability; it never prevents a start."""
    broker_id = settings.broker_id

    def build(services: Services) -> Capability:
        if services.contents is None:
            return GrowthCapability(None, services.wall)
        board = services.board
        watch = GrowthWatch(board, services.contents, broker_id, services.is_observer)

        def on_line(line: Line) -> None:
            watch.writers.count(line, board.now())

        # It throttles nobody, so it does not need the log.
        services.subscribe(GrowthCapability.name, on_line, lambda: False)
        return GrowthCapability(watch, services.wall)

    return build


class GrowthCapability(Capability):
    """Reads volumes near a limit; without brokers it does nothing.

    Attributes:
        watch: the volumes near a limit; None without brokers.
    """

    name = "growth"

    def __init__(self, watch: GrowthWatch | None, wall: Wall) -> None:
        self.watch = watch
        self._wall = wall

    def tasks(self) -> Mapping[str, Task]:
        """Requests contents."""
        return {} if self.watch is None else {"growth of volumes": self.watch.run}

    def add_routes(self, app: FastAPI) -> None:
        """The route; without brokers its list is empty."""
        add_growth(app, self.watch, self._wall)

    def metrics(self) -> Iterator[Metric]:
        """The metrics of parts of volumes."""
        return growth_metrics(self.watch)
