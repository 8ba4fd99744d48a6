"""The HTTP API: reads the board, and folds an operator's word into it."""

from sidecar.api.app import build_app, build_metrics_app
from sidecar.api.health import Polling

__all__ = ["Polling", "build_app", "build_metrics_app"]
