"""Asks a sidecar for admission, as a portal does before it asks Kafka.

Example: of 50 topics of 4 partitions at 20 partitions a second the first 50 are admitted, of the
next 50 the first 6, as the bucket of 220 may be overdrawn once; then one more every 0.2 s.
"""

import json
import ssl
from collections.abc import Sequence
from typing import Final

from sidecar.http import HttpError, request
from sidecar.mutations.routes import PATH

_OK: Final = 200
_TOO_MANY_REQUESTS: Final = 429


class Portal:
    """A client of a sidecar's admission endpoint.

    Args:
        url: the sidecar's.
        user: for whom it asks.
        client_id: likewise.
    """

    def __init__(self, url: str, user: str, client_id: str) -> None:
        self._url = f"{url}{PATH}"
        self._client = {"user": user, "client_id": client_id}
        self._tls = ssl.create_default_context()

    async def admitted(self, names: Sequence[str], partitions: int) -> list[str]:
        """Those topics that may be created now.

        Args:
            names: of the topics.
            partitions: of each.

        Raises:
            OSError: of the network.
            HttpError: it is not an answer of the endpoint.
        """
        operations = [
            {"kind": "create_topic", "topic": name, "partitions": partitions} for name in names
        ]
        response = await request(
            "POST",
            self._url,
            headers={"Content-Type": "application/json"},
            ssl_context=self._tls,
            body=json.dumps({**self._client, "operations": operations}).encode(),
        )
        if response.status == _TOO_MANY_REQUESTS:
            return []
        if response.status != _OK:
            raise HttpError(f"the sidecar answered {response.status}: {response.body[:200]!r}")
        results = json.loads(response.body)["results"]
        return [each["topic"] for each in results if each["accepted"]]
