"""Request time (KIP-124) as a capability: it reads the request log and says who uses what of it.

Other capabilities subscribe to the same reader.
"""

from collections.abc import Iterable, Mapping

from fastapi import FastAPI
from prometheus_client.registry import Collector

from sidecar.control.capability import Build, Capability, Services, Task
from sidecar.request_time.metrics import RequestLogCollector
from sidecar.request_time.routes import add_usage
from sidecar.requestlog.reader import LogReader
from sidecar.settings import Settings


def prepare(settings: Settings) -> Build:
    """Gives what builds it; nothing here can refuse a start."""
    is_enabled = settings.check_interval_s > 0.0
    return lambda services: _build(services, is_enabled=is_enabled)


def _build(services: Services, *, is_enabled: bool) -> Capability:
    return RequestTimeCapability(services.request_log, is_enabled=is_enabled)


class RequestTimeCapability(Capability):
    """Who uses what of a broker's request handlers."""

    name = "request_time"

    def __init__(self, log: LogReader | None, *, is_enabled: bool) -> None:
        self._log = log
        self._is_enabled = is_enabled

    def tasks(self) -> Mapping[str, Task]:
        """Follows the log, where there is one."""
        return {"request log": self._log.run} if self._log is not None and self._is_enabled else {}

    def add_routes(self, app: FastAPI) -> None:
        """One, which says so where no log is read."""
        add_usage(app, self._log)

    def collectors(self) -> Iterable[Collector]:
        """What was read of the log."""
        return (RequestLogCollector(self._log),)
