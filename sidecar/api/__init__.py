"""The HTTP API: reads the board, and folds an operator's word into it."""

from sidecar.api.readiness import Polling
from sidecar.daemon.application import build_app, build_metrics_app

__all__ = ["Polling", "build_app", "build_metrics_app"]
