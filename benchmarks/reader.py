"""A reader of the throttle factor that waits for its changes, as a quota callback does."""

import http.client
import json
import socket
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Self

from sidecar.settings import HostPort

_MARGIN_S = 10.0


@dataclass(frozen=True, slots=True)
class ReceivedFactor:
    """What a reader received.

    Attributes:
        at: when all of the answer was there, ``time.monotonic()`` seconds.
        factor: the throttle factor.
        source: where it comes from.
    """

    at: float
    factor: float
    source: str


class Reader:
    """One reader on one connection, in a thread of its own, until its context is left.

    Attributes:
        last: what it heard last; None before the first answer.
    """

    def __init__(self, sidecar: HostPort, wait_s: float = 60.0) -> None:
        """Nothing is asked yet.

        Args:
            sidecar: where it listens.
            wait_s: how long an answer may wait for a change, seconds.
        """
        self.last: ReceivedFactor | None = None
        self._wait_s = wait_s
        self._connection = http.client.HTTPConnection(
            sidecar.host, sidecar.port, timeout=wait_s + _MARGIN_S
        )
        self._connection.connect()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"reader of {sidecar}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping = True
        # Closing it would not wake a thread that waits for its answer; this does.
        if (connected := self._connection.sock) is not None:
            connected.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        headers: dict[str, str] = {}
        try:
            while not self._stopping:
                self._connection.request("GET", "/v1/throttle-factor", headers=headers)
                response = self._connection.getresponse()
                body, at = response.read(), time.monotonic()
                headers = {
                    "If-None-Match": response.getheader("ETag") or "",
                    "Prefer": f"wait={self._wait_s:.0f}",
                }
                if response.status == HTTPStatus.OK:
                    document = json.loads(body)
                    self.last = ReceivedFactor(at, document["factor"], document["source"])
        except (OSError, http.client.HTTPException):
            if not self._stopping:
                raise
