"""The status page: what a person sees of the throttle, and how they set it by hand.

``add_status(app, ...)`` adds its routes. Views are functions of a snapshot and a moment. HTML is
made of views alone. Only ``routes`` and ``responses`` know requests.
"""

from sidecar.status.inputs import StatusInputs
from sidecar.status.routes import add_status

__all__ = ["StatusInputs", "add_status"]
