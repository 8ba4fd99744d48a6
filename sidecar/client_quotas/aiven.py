"""Client quotas of Aiven for Apache Kafka, by Aiven's own API: Kafka's protocol can't set them.

``describe`` and ``alter`` take the place of Kafka's requests in ``KafkaQuotas``, so originals are
kept as there: as quotas of names that no client has. The API sets all quotas of an entity at once
and removes them only together, so each request has those that stay.

Example: alice has producer_byte_rate 10 MB/s and consumer_byte_rate 5 MB/s. Lowering sends
``POST .../quota`` with user alice, 8559249 and 5000000.

Source: api.aiven.io/doc (ServiceKafkaQuotaList, ServiceKafkaQuotaCreate, ServiceKafkaQuotaDelete);
aiven.io/docs/products/kafka/howto/manage-quotas. Never tried on Aiven itself.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from sidecar.api.bearer_token import read_token
from sidecar.client_quotas.platform import KafkaQuotas
from sidecar.http import HttpError, Response, failure_of
from sidecar.kafka.quota_messages import Alteration
from sidecar.peers.trust import Trust
from sidecar.quotas.entities import ClientQuotas, Entity
from sidecar.settings import Settings
from sidecar.threads import SharedCalls
from sidecar.throttle.quota_steps import highest_rung
from sidecar.volumes import Failure, FailureKind

MOST: Final = float(1 << 30)
"""The highest rate that the API takes, bytes/s."""

_READS: Final = SharedCalls("Aiven token")
_DEADLINE_S: Final = 10.0
_TRIES: Final = 3
"""What was removed together with a quota has to come back."""
_LONGEST_ANSWER: Final = 4 << 20
_KINDS: Final = ("user", "client-id")
_KEYS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
_DEFAULT: Final = "default"
"""The API's name of a default."""


@dataclass(frozen=True, slots=True)
class AivenService:
    """A service of Aiven.

    Attributes:
        url: the address of its quotas.
        token_file: the file with a token, which is read for each request.
        send: sends a request.
    """

    url: str
    token_file: Path
    send: Callable[..., Awaitable[Response]] = field(default_factory=lambda: Trust().request)

    async def describe(self) -> ClientQuotas | Failure:
        """All client quotas; SettingsError if the token can't be read."""
        answer = await self._ask("GET")
        if isinstance(answer, Failure):
            return answer
        try:
            found = json.loads(answer)["quotas"]
            return {_entity(each): _values(each) for each in found if _values(each)}
        except (ValueError, LookupError, TypeError, AttributeError):
            return Failure(FailureKind.PROTOCOL, f"the answer of {self.url} is no list of quotas")

    async def alter(self, alterations: Sequence[Alteration]) -> list[Failure | None] | Failure:
        """Set and remove quotas one by one, and return each failure."""
        found = await self.describe()
        if isinstance(found, Failure):
            return found
        return [await self._set(found, parts, changed) for parts, changed in alterations]

    async def _set(
        self, found: ClientQuotas, parts: Mapping[str, str | None], changed: Mapping[str, Any]
    ) -> Failure | None:
        before = found.get(Entity.of(parts), {})
        # The ladder of quotas must recognise what is set in place of a higher one.
        new = {
            key: highest_rung(MOST) if (value or 0.0) > MOST else value
            for key, value in changed.items()
        }
        after = {key: value for key, value in {**before, **new}.items() if value is not None}
        name = {kind: _DEFAULT if each is None else each for kind, each in parts.items()}
        if after == before:
            return None
        if before and not before.keys() <= after.keys():
            removed = await self._ask("DELETE", f"?{urlencode(name)}")
            if isinstance(removed, Failure):
                return removed
        answer: bytes | Failure = b""
        for _ in range(_TRIES if after else 0):
            answer = await self._ask("POST", body={**name, **after})
            if not isinstance(answer, Failure):
                return None
        if isinstance(answer, Failure) and before:
            return replace(answer, message=f"{answer.message}; before, {name} had {dict(before)}")
        return answer if isinstance(answer, Failure) else None

    async def _ask(
        self, method: str, query: str = "", body: Mapping[str, object] | None = None
    ) -> bytes | Failure:
        content = b"" if body is None else json.dumps(body).encode()
        try:
            async with asyncio.timeout(_DEADLINE_S):
                # In a thread of its own, because the disk of the token may hang.
                file = self.token_file
                token = await _READS.call(file, read_token, file, "Aiven token")
                answer = await self.send(
                    method,
                    self.url + query,
                    headers={
                        "Authorization": f"Bearer {token}",
                        "Content-Type": "application/json",
                    },
                    body=content,
                    longest_answer=_LONGEST_ANSWER,
                )
        except TimeoutError as error:
            return Failure(FailureKind.TIMEOUT, f"{self.url}: {failure_of(error, _DEADLINE_S)}")
        except (OSError, HttpError) as error:
            return Failure(FailureKind.CONNECT, f"{self.url}: {failure_of(error, _DEADLINE_S)}")
        if answer.status < 300:
            return answer.body
        is_refused = answer.status in {401, 403}
        return Failure(
            FailureKind.AUTHORIZATION if is_refused else FailureKind.BROKER,
            f"{method} {self.url} was answered {answer.status} {answer.reason}"
            + (": check SIDECAR_AIVEN_TOKEN_FILE and its permissions" if is_refused else ""),
        )


def aiven_quotas(settings: Settings) -> KafkaQuotas | None:
    """The quotas of the service that the settings name; None if they name none."""
    project, service = settings.aiven_project, settings.aiven_service
    file = settings.aiven_token_file
    if project is None or service is None or file is None:
        return None
    path = f"project/{quote(project, safe='')}/service/{quote(service, safe='')}/quota"
    reached = AivenService(f"{settings.aiven_url}{path}", file)
    return KafkaQuotas(reached.describe, reached.alter, is_whole=False)


def _entity(quota: Mapping[str, Any]) -> Entity:
    names = {kind: quota[kind] for kind in _KINDS if quota.get(kind)}
    return Entity.of({kind: None if name == _DEFAULT else name for kind, name in names.items()})


def _values(quota: Mapping[str, Any]) -> dict[str, float]:
    """The quotas that are set; whether others are null, 0 or missing is not documented."""
    return {key: float(quota[key]) for key in _KEYS if quota.get(key)}
