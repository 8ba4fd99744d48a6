"""``throttle-sidecar quotas capacity``: the capacity of each broker's threads.

Example: a broker with 8 I/O threads and 3 network threads has a capacity of 1,100 %.
"""

import asyncio
from typing import Final

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.quotas.output import echo_json
from sidecar.quotas.request_time.thread_capacity import BrokerCapacity, differs, smallest
from sidecar.request_time.cluster_state import Capacities, read_capacities

_DOTTED: Final = 28
"""The width of a label with its dots."""


@click.command(
    "capacity",
    epilog="""\b
Examples:
  throttle-sidecar quotas capacity --bootstrap-server localhost:9092
  throttle-sidecar quotas capacity --command-config admin.properties --json
""",
)
@kafka_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, kafka: KafkaOptions, as_json: bool) -> None:
    """Print the capacity of each broker's threads, in percent of one thread.

    The capacity is (num.io.threads + num.network.threads) x 100. A quota is the same number on all
    brokers, so plan for the smallest broker. The exit code is 1 if a broker did not answer.
    """
    found = asyncio.run(read_capacities(load_kafka_admin(kafka)))
    if as_json:
        echo_json(document(found))
    else:
        click.echo("\n\n".join(block(broker) for broker in found.brokers))
    for warning in warnings(found):
        click.echo(f"Warning: {warning}", err=True)
    context.exit(1 if found.problems else 0)


def warnings(found: Capacities) -> tuple[str, ...]:
    """Return the warnings: how brokers differ, and which did not answer."""
    different = [f"brokers are not alike: {each}" for each in differs(found.brokers)]
    if different:
        least = smallest(found.brokers)
        different.append(f"the smallest, broker {least.broker_id}, has {least.percent:,} %")
    return (*different, *found.problems)


def document(found: Capacities) -> dict[str, object]:
    """Return the JSON document."""
    least = smallest(found.brokers)
    return {
        "brokers": [
            {
                "broker_id": broker.broker_id,
                **broker.settings(),
                "capacity_percent": broker.percent,
                "io_capacity_percent": broker.io_percent,
            }
            for broker in found.brokers
        ],
        "smallest_capacity_percent": least.percent,
        "warnings": list(warnings(found)),
    }


def label(name: str, value: object) -> str:
    """Return a line with dots between a name and its value."""
    return f"{name:.<{_DOTTED}}: {value}"


def block(broker: BrokerCapacity) -> str:
    """Return a broker's lines in the form of the article's script."""
    lines = [("broker.id", broker.broker_id), *broker.settings().items()]
    return "\n".join(
        label(name, value) for name, value in [*lines, ("total capacity", broker.percent)]
    )
