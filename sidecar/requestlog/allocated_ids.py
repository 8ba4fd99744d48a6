"""Which producer id a broker allocated to which user: KIP-936 is enforced by these events.

Only the answer to INIT_PRODUCER_ID contains both the id and the principal. A producer can send this
request to any broker, and only that broker logs it.

Example: alice's producer gets id 1000001 from broker 2. Broker 2's log then yields a
``ProducerIdAllocated`` with user "alice" and id 1000001. An answer with an error contains no id, so
it yields no event.

Source: KIP-936, section "ProducerIdQuotaManager"; Kafka's InitProducerIdResponse.
"""

from dataclasses import dataclass

from sidecar.requestlog.line import Line
from sidecar.requestlog.request_detail import INIT_PRODUCER_ID, detail
from sidecar.requestlog.wire import InitProducerIdAnswer


@dataclass(frozen=True, slots=True)
class ProducerIdAllocated:
    """An id that a broker allocated to a producer, or returned to it again with the next epoch.

    Attributes:
        user: the principal's name without its type.
        producer_id: >= 0. Transactional producers get the same id again.
    """

    user: str
    producer_id: int


def producer_id(line: Line) -> ProducerIdAllocated | None:
    """The event that a line yields; None if it yields none."""
    if line.api_key != INIT_PRODUCER_ID:
        return None
    answer = detail(line)
    if not isinstance(answer, InitProducerIdAnswer) or answer.error != 0 or answer.producer_id < 0:
        return None
    return ProducerIdAllocated(line.user, answer.producer_id)
