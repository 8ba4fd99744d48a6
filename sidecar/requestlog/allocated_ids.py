"""Which producer id a broker allocated to the user of a line: KIP-936 is enforced by these ids.

Only the answer to INIT_PRODUCER_ID contains both the id and the principal. A producer can send this
request to any broker, and only that broker logs it.

Example: alice's producer gets id 1000001 from broker 2. Broker 2's log then has a line with user
"alice" and this id. An answer with an error contains no id.

Source: KIP-936, section "ProducerIdQuotaManager"; Kafka's InitProducerIdResponse.
"""

from sidecar.requestlog.line import Line
from sidecar.requestlog.request_detail import INIT_PRODUCER_ID, detail
from sidecar.requestlog.wire import InitProducerIdAnswer


def producer_id(line: Line) -> int | None:
    """The id that a broker allocated, or returned again with the next epoch; None without one.

    Transactional producers get the same id again. It is >= 0.
    """
    if line.api_key != INIT_PRODUCER_ID:
        return None
    answer = detail(line)
    if not isinstance(answer, InitProducerIdAnswer) or answer.error != 0 or answer.producer_id < 0:
        return None
    return answer.producer_id
