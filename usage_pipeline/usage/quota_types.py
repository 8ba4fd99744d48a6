"""The quota types by their names in tables, and the names of their quotas in Kafka.

This module works without Spark, because commands read it too.

Example: ``producer_byte_rate`` sets "produce".
"""

from collections.abc import Mapping
from typing import Final

from sidecar.quotas.entities import QuotaKey

PRODUCE: Final = "produce"
FETCH: Final = "fetch"
REQUEST: Final = "request"
CONTROLLER_MUTATION: Final = "controller_mutation"
PRODUCER_IDS: Final = "producer_ids"
KEYS: Final[Mapping[str, str]] = {
    PRODUCE: QuotaKey.PRODUCE.value,
    FETCH: QuotaKey.FETCH.value,
    REQUEST: QuotaKey.REQUEST.value,
    CONTROLLER_MUTATION: QuotaKey.CONTROLLER_MUTATION.value,
    PRODUCER_IDS: "producer_ids_rate",
}
"""The quota's name for each quota type; the last is KIP-936's, which Kafka lacks."""
ANONYMOUS: Final = "ANONYMOUS"
"""Kafka's name for everybody without a login."""
