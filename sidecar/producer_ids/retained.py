"""What this capability keeps over a restart: the quotas set over HTTP, and those set in Kafka.

The board and the state file hold both as JSON under the capability's name.

Example: ``{"quotas": [{"user": "bob", "producer_ids_rate": 50.0, "throttled_request_percentage":
0.01}], "enforced_request_percentages": {"bob": 0.010000936}}``; the default quota's user is null.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import Field

from sidecar.control.board import Board
from sidecar.control.operation import Operation
from sidecar.quotas.entities import DEFAULT, Default
from sidecar.quotas.producer_ids.id_quotas import (
    LARGEST_PERCENTAGE,
    LARGEST_RATE,
    SMALLEST_PERCENTAGE,
    SMALLEST_RATE,
    ProducerIdQuota,
    ProducerIdQuotas,
)
from sidecar.state.records import Record, restored

NAME: Final = "producer_ids"
"""The capability's name, used for its throttles and its record."""


class _QuotaRecord(Record):
    user: str | None
    producer_ids_rate: float | None = Field(ge=SMALLEST_RATE, le=LARGEST_RATE)
    throttled_request_percentage: float | None = Field(
        ge=SMALLEST_PERCENTAGE, le=LARGEST_PERCENTAGE
    )


class _RetainedRecord(Record):
    quotas: list[_QuotaRecord]
    enforced_request_percentages: dict[str, float]


class Retained:
    """Reads the record from the board's memory, and records each change.

    If the disk of the state hangs at the start, the record comes later. Changes until then are
    newer, and are added to it.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._part: object = None
        self._quotas: ProducerIdQuotas = {}
        self._percentages: Mapping[str, float] = {}
        self._follow()

    @property
    def quotas(self) -> ProducerIdQuotas:
        """The producer id quotas that operators set over HTTP."""
        self._follow()
        return self._quotas

    @property
    def enforced_request_percentages(self) -> Mapping[str, float]:
        """User -> the request_percentage that was set in Kafka and must be removed."""
        self._follow()
        return self._percentages

    def _follow(self) -> None:
        memory = self._board.snapshot.memory
        part = memory.retained.get(NAME)
        if part is self._part:
            return
        changed, self._part = self._part is not None, part
        record = restored(memory, NAME, _RetainedRecord)
        if record is None:
            return
        quotas: ProducerIdQuotas = {
            DEFAULT if each.user is None else each.user: ProducerIdQuota(
                each.producer_ids_rate, each.throttled_request_percentage
            )
            for each in record.quotas
        }
        self._quotas = {**quotas, **self._quotas}
        self._percentages = {**record.enforced_request_percentages, **self._percentages}
        if changed:
            self._retain()

    def set_quotas(self, quotas: ProducerIdQuotas, operation: Operation | None = None) -> None:
        """Record new quotas."""
        self._quotas = quotas
        self._retain(operation)

    def set_enforced_request_percentages(self, percentages: Mapping[str, float]) -> None:
        """Record new percentages."""
        self._percentages = percentages
        self._retain()

    def _retain(self, operation: Operation | None = None) -> None:
        # Plain dicts, because 10,000 pydantic records would block the loop four times as long.
        quotas = [
            {
                "user": None if isinstance(user, Default) else user,
                "producer_ids_rate": quota.producer_ids_rate,
                "throttled_request_percentage": quota.throttled_request_percentage,
            }
            for user, quota in self._quotas.items()
        ]
        part = {"quotas": quotas, "enforced_request_percentages": dict(self._percentages)}
        self._part = part
        self._board.retain(NAME, part, operation)
