"""The capability for request time (KIP-124): the usage of clients, from the request log."""

from collections.abc import Iterable

from fastapi import FastAPI
from prometheus_client.registry import Collector

from sidecar.control.capability import Build, Capability
from sidecar.request_time.metrics import RequestLogCollector
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

    def collectors(self) -> Iterable[Collector]:
        """The metrics of reading the log."""
        return (RequestLogCollector(self._log),)
