"""Decodes the request and the answer of a line, for all APIs that the pipeline reads.

``sidecar.requestlog.request_detail`` decodes the APIs that the daemon reads too. This module adds:

- PRODUCE: bytes and acks.
- ALTER_CLIENT_QUOTAS: the quotas that were changed (KIP-546).

Example: an ALTER_CLIENT_QUOTAS sets user alice's producer_byte_rate to 1 MB/s. This is
``QuotaChange(Entity("alice"), "producer_byte_rate", 1e6, error=0)``.

Source: Kafka's message definitions (clients/src/main/resources/common/message).
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from sidecar.quotas.entities import Entity
from sidecar.requestlog import request_detail
from sidecar.requestlog.exempt import PRODUCE
from sidecar.requestlog.line import Line
from sidecar.requestlog.produce_size import Produce
from sidecar.requestlog.rejected import Rejected, RejectedKind
from sidecar.requestlog.wire import Int32, Wire

ALTER_CLIENT_QUOTAS: Final = 49


class EntityPart(Wire, frozen=True):
    """A user, client-id or address; the name None stands for the default."""

    entity_type: str
    entity_name: str | None


class Op(Wire, frozen=True):
    """A quota to set or to remove; Jackson writes NaN and infinities as strings."""

    key: str
    value: float | str
    remove: bool


class QuotaEntry(Wire, frozen=True):
    """The quotas of one entity."""

    entity: tuple[EntityPart, ...]
    ops: tuple[Op, ...]


class QuotasRequest(Wire, frozen=True):
    """An ALTER_CLIENT_QUOTAS request."""

    entries: tuple[QuotaEntry, ...]
    validate_only: bool


class QuotaAnswer(Wire, frozen=True):
    """The result for one entity."""

    error_code: Int32
    entity: tuple[EntityPart, ...]


class QuotasAnswer(Wire, frozen=True):
    """The answer to ALTER_CLIENT_QUOTAS."""

    entries: tuple[QuotaAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """One quota that was set or removed.

    Attributes:
        entity: the entity that the quota applies to.
        key: the quota's name in Kafka's configuration.
        value: the quota; None if it was removed.
        error: Kafka's error code; None without an answer.
    """

    entity: Entity
    key: str
    value: float | None
    error: int | None


@dataclass(frozen=True, slots=True)
class QuotaChanges:
    """An ALTER_CLIENT_QUOTAS request.

    Attributes:
        changes: the changes in the request's order.
        validate_only: whether the request only validates.
    """

    changes: tuple[QuotaChange, ...]
    validate_only: bool


Detail = request_detail.Detail | Produce | QuotaChanges

_PRODUCE: Final = msgspec.json.Decoder(Produce)
_QUOTAS_REQUEST: Final = msgspec.json.Decoder(QuotasRequest)
_QUOTAS_ANSWER: Final = msgspec.json.Decoder(QuotasAnswer | str | None)


def detail(line: Line) -> Detail | Rejected | None:
    """Decodes a line's request and answer; None for APIs that quotas do not need."""
    try:
        if line.api_key == PRODUCE:
            return _PRODUCE.decode(line.body.request)
        if line.api_key == ALTER_CLIENT_QUOTAS:
            return _quotas(line)
    except msgspec.MsgspecError as error:
        return Rejected(RejectedKind.UNEXPECTED, str(error))
    except ValueError:
        return Rejected(RejectedKind.UNEXPECTED, "an unknown kind of entity, or not a number")
    return request_detail.detail(line)


def _quotas(line: Line) -> QuotaChanges:
    request = _QUOTAS_REQUEST.decode(line.body.request)
    answer = _QUOTAS_ANSWER.decode(line.body.response)
    errors = (
        {_entity(entry.entity): entry.error_code for entry in answer.entries}
        if isinstance(answer, QuotasAnswer)
        else {}
    )
    return QuotaChanges(
        tuple(
            QuotaChange(entity, op.key, None if op.remove else float(op.value), errors.get(entity))
            for entry in request.entries
            for entity in (_entity(entry.entity),)
            for op in entry.ops
        ),
        request.validate_only,
    )


def _entity(parts: tuple[EntityPart, ...]) -> Entity:
    return Entity.of({part.entity_type: part.entity_name for part in parts})
