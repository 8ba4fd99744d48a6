"""GET /v1/client-quotas/writers: who writes to the broker beside this sidecar, for other sidecars.

Example: alice wrote to "orders" on broker 2 with two client-ids, and the log has no gap:
{"broker_id":2,"cluster_id":"A","is_whole":true,"writers":[["alice","orders",""]],
"rates":[3e6,2e6,2e6]}.
"""

from collections.abc import Callable

from fastapi import FastAPI
from starlette.responses import Response

from sidecar.api.answers import answer
from sidecar.client_quotas.log_watch import PATH
from sidecar.client_quotas.writers import BrokerWriters


def add_writers(app: FastAPI, writers: Callable[[], BrokerWriters]) -> None:
    """Add the route.

    Args:
        app: gets the route.
        writers: what this sidecar tells.
    """

    @app.get(PATH, summary="Who writes to this sidecar's broker, for other sidecars")
    async def of_own_broker() -> Response:
        """Empty without client-quotas and a request log. Writers need the scope of volumes.

        The form is for sidecars of the same version.
        """
        return answer(writers())
