"""The quota types as tables name them, and what Kafka calls their quotas.

Needs no Spark: commands read it too.

Example: "produce" is set by ``producer_byte_rate``.
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
"""A quota type to the quota's name; the last is KIP-936's, which Kafka lacks."""
