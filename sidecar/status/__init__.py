"""The status page: it shows the throttle, and sets or ends an override.

``add_status(app, ...)`` adds its routes. Views are functions of a snapshot and a moment. HTML is
made from views alone. Only ``routes`` and ``responses`` handle requests.
"""

from sidecar.status.inputs import StatusInputs
from sidecar.status.routes import add_status

__all__ = ["StatusInputs", "add_status"]
