"""The status page: what a person sees of the throttle, and how they set it by hand.

``add_status(app, ...)`` adds its routes. Views are functions of a snapshot and a moment, HTML is
made of views alone, and only ``routes`` and ``answering`` know of
requests.
"""

from sidecar.status.routes import add_status

__all__ = ["add_status"]
