"""Reads the brokers' capacity, the current quotas and the users, for the commands.

Example: one of three brokers does not answer: ``read_capacities`` has two brokers and one problem.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sidecar.errors import BrokersError
from sidecar.quotas.entities import ClientQuotas
from sidecar.quotas.request_time.thread_capacity import SETTINGS, BrokerCapacity

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when brokers are asked.
    from sidecar.settings import KafkaAdmin
    from sidecar.volumes import Failure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Capacities:
    """The capacities of the brokers.

    Attributes:
        brokers: the brokers that answered, by ascending id.
        problems: one line for each broker that did not answer.
    """

    brokers: tuple[BrokerCapacity, ...]
    problems: tuple[str, ...]


async def read_capacities(admin: "KafkaAdmin") -> Capacities:
    """The threads of every active broker.

    Raises:
        BrokersError: no broker answered.
    """
    from sidecar.kafka.broker_configs import describe_broker_configs  # noqa: PLC0415 - see above
    from sidecar.volumes import Failure  # noqa: PLC0415 - see above

    configs = must(await describe_broker_configs(admin, None, SETTINGS))
    brokers: list[BrokerCapacity] = []
    problems: list[str] = []
    for broker_id, text in configs.items():
        if isinstance(text, Failure):
            problems.append(text.message)
            continue
        try:
            brokers.append(_capacity(broker_id, text))
        except ValueError as error:
            problems.append(str(error))
    if not brokers:
        raise BrokersError("\n".join(problems))
    return Capacities(tuple(brokers), tuple(problems))


async def read_quotas(admin: "KafkaAdmin") -> ClientQuotas:
    """The quotas that are set.

    Raises:
        BrokersError: no broker answered.
    """
    from sidecar.kafka.client_quotas import describe_client_quotas  # noqa: PLC0415 - see above

    return must(await describe_client_quotas(admin))


async def read_cluster_id(admin: "KafkaAdmin") -> str | None:
    """The id of the brokers' cluster; None if they have none.

    Raises:
        BrokersError: no broker answered.
    """
    from sidecar.kafka.client.one_call import query_any  # noqa: PLC0415 - see above
    from sidecar.kafka.cluster_answers import read_cluster_id as read  # noqa: PLC0415 - see above
    from sidecar.kafka.cluster_messages import DescribeClusterId  # noqa: PLC0415 - see above

    subject = "the id of the cluster"
    return must(await query_any(admin, DescribeClusterId(), read, 10.0, subject)) or None


def must(answer: "T | Failure") -> T:
    """Return the answer.

    Raises:
        BrokersError: there is no answer; it says why.
    """
    from sidecar.volumes import Failure  # noqa: PLC0415 - see above

    if isinstance(answer, Failure):
        raise BrokersError(answer.message)
    return answer


def _capacity(broker_id: int, text: Mapping[str, str | None]) -> BrokerCapacity:
    values = []
    for name in SETTINGS:
        value = text.get(name)
        if value is None or not value.isdecimal():
            raise ValueError(f"broker {broker_id}: {name} is missing or not a number: {value}")
        values.append(int(value))
    return BrokerCapacity(broker_id, *values)
