"""The capability for request time (KIP-124): the usage of clients, from the request log."""

from collections.abc import Iterator

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

from sidecar.control.capability import Build, Capability
from sidecar.request_time.metrics import request_log_metrics
from sidecar.request_time.routes import add_usage
from sidecar.requestlog.reader import LogReader
from sidecar.settings import Settings


def prepare(_settings: Settings) -> Build:
    """Return the function that builds the capability; it never prevents a start."""
    return lambda services: RequestTimeCapability(services.request_log)


class RequestTimeCapability(Capability):
    """Shows how much of a broker's request handlers each client uses."""

    name = "request_time"

    def __init__(self, log: LogReader | None) -> None:
        self._log = log

    def add_routes(self, app: FastAPI) -> None:
        """The route. Without a request log it answers that there is none."""
        add_usage(app, self._log)

    def metrics(self) -> Iterator[Metric]:
        """The metrics of reading the log."""
        return request_log_metrics(self._log)
