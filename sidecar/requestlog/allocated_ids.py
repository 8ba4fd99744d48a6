"""Which producer id was allocated to which user: the events that KIP-936 is enforced by.

Only the answer to INIT_PRODUCER_ID ties an id to a principal, and only in the log of the broker
that got the request, which is any of them.

Example: alice's producer gets id 1000001 from broker 2: ``ProducerIdAllocated`` of user "alice", id
1000001 and epoch 0 from broker 2's log. An answer with an error has no id and makes no event.

Source: KIP-936, section "ProducerIdQuotaManager"; Kafka's InitProducerIdResponse.
"""

from dataclasses import dataclass
from datetime import datetime

from sidecar.requestlog.line import Line
from sidecar.requestlog.request_detail import INIT_PRODUCER_ID, detail
from sidecar.requestlog.wire import InitProducerIdAnswer


@dataclass(frozen=True, slots=True)
class ProducerIdAllocated:
    """An id that a broker allocated to a producer, or returned again with the next epoch.

    Attributes:
        time: when the broker answered, in its time zone.
        user: the principal's name without its type.
        client_id: "" when the client has none.
        producer_id: >= 0.
        epoch: 0 for an id that is new; transactional producers get theirs again.
    """

    time: datetime
    user: str
    client_id: str
    producer_id: int
    epoch: int


def producer_id(line: Line) -> ProducerIdAllocated | None:
    """The event of a line; None when it has none."""
    if line.api_key != INIT_PRODUCER_ID:
        return None
    answer = detail(line)
    if not isinstance(answer, InitProducerIdAnswer) or answer.error != 0 or answer.producer_id < 0:
        return None
    return ProducerIdAllocated(
        line.time, line.user, line.client_id, answer.producer_id, answer.producer_epoch
    )
