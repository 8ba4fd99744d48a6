"""Request time (KIP-124) as a capability: it says who uses what of the request log."""

from collections.abc import Iterable

from fastapi import FastAPI
from prometheus_client.registry import Collector

from sidecar.control.capability import Build, Capability
from sidecar.request_time.metrics import RequestLogCollector
from sidecar.request_time.routes import add_usage
from sidecar.requestlog.reader import LogReader
from sidecar.settings import Settings


def prepare(_settings: Settings) -> Build:
    """Returns what builds it; nothing here can prevent a start."""
    return lambda services: RequestTimeCapability(services.request_log)


class RequestTimeCapability(Capability):
    """Who uses what of a broker's request handlers."""

    name = "request_time"

    def __init__(self, log: LogReader | None) -> None:
        self._log = log

    def add_routes(self, app: FastAPI) -> None:
        """One, which says so where no log is read."""
        add_usage(app, self._log)

    def collectors(self) -> Iterable[Collector]:
        """What was read of the log."""
        return (RequestLogCollector(self._log),)
