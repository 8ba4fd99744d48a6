"""Posts events of the sidecar's pod to the API server of Kubernetes.

The token and the CA certificate are those that the kubelet mounts. It replaces the token every hour
or so, so the token's file is read for each event, in a thread of its own. If the API server refuses
an event, the text says which right to grant.

Source: kubernetes.io, "Accessing the Kubernetes API from a Pod"; RFC 9110 section 15.5.10 (409).
"""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from sidecar.api.bearer_token import read_token
from sidecar.errors import SettingsError
from sidecar.http import Response
from sidecar.peers.trust import Trust
from sidecar.threads import SharedCalls
from sidecar.webhook.sender import NotAllowedError

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_READS: Final = SharedCalls("service account token")
_CREATED: Final = 201
_EXISTS: Final = 409


@dataclass(frozen=True, slots=True)
class EventPoster:
    """Posts events into a namespace.

    Attributes:
        url: the address for events of the namespace.
        send: sends a request.
        folder: the folder with the token.
    """

    url: str
    send: Callable[..., Awaitable[Response]]
    folder: Path = ACCOUNT

    @classmethod
    def of(cls, url: str, namespace: str) -> "EventPoster":
        """Return the poster for a namespace, which trusts the mounted CA certificate.

        Args:
            url: the address of the API server, with a slash at its end.
            namespace: the namespace of the pod.
        """
        trust = Trust(partial(ssl.create_default_context, cafile=ACCOUNT / "ca.crt"))
        return cls(f"{url}api/v1/namespaces/{namespace}/events", trust.request)

    async def post(self, body: bytes, headers: Mapping[str, str]) -> int:
        """Post an event and return the status; one that exists already counts as created.

        Raises:
            OSError, HttpError: as ``sidecar.http.request``.
            NotAllowedError: the pod has no token, or the API server does not accept it.
        """
        try:
            file = self.folder / "token"
            token = await _READS.call(file, read_token, file, "service account's token")
        except SettingsError as error:
            raise NotAllowedError(f"{error}; set automountServiceAccountToken: true") from error
        answer = await self.send(
            "POST", self.url, headers={**headers, "Authorization": f"Bearer {token}"}, body=body
        )
        if answer.status in {401, 403}:
            raise NotAllowedError(
                f"the API server answers {answer.status}: bind a Role with the verb create on the "
                "resource events to the pod's service account (the chart's kubernetesEvents=true)"
            )
        return _CREATED if answer.status == _EXISTS else answer.status
