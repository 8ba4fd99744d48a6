"""``throttle-sidecar quotas show``: the quotas that are set.

Example: ``throttle-sidecar quotas show --json > before.json`` writes a file for ``quotas diff``
and ``quotas apply``. During a throttle it has the quotas of before.
"""

import asyncio

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.quotas.output import echo_json, in_order, print_quotas, print_warnings
from sidecar.client_quotas.plan import without_throttles
from sidecar.quotas.kept_originals import originals_in
from sidecar.quotas.quota_file import quota_documents
from sidecar.request_time.cluster_state import read_quotas


@click.command(
    "show",
    epilog="""\b
Examples:
  throttle-sidecar quotas show --bootstrap-server localhost:9092
  throttle-sidecar quotas show --key request_percentage
  throttle-sidecar quotas show --json > before.json
""",
)
@kafka_options
@click.option(
    "--key", multiple=True, metavar="QUOTA", help="Print only quotas of this key; may be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(kafka: KafkaOptions, key: tuple[str, ...], as_json: bool) -> None:
    """Print the quotas of every user, client-id and address.

    With --json, quotas that a sidecar has lowered are printed as they were before.
    """
    quotas = in_order(asyncio.run(read_quotas(load_kafka_admin(kafka))))
    if lowered := len(originals_in(quotas)):
        text = f"{lowered} produce quotas may be lowered by a sidecar now: see quotas status"
        print_warnings([text])
    if as_json:
        # A backup must not make a throttle permanent.
        quotas = without_throttles(quotas)
    if key:
        quotas = {
            entity: shown
            for entity, values in quotas.items()
            if (shown := {name: value for name, value in values.items() if name in key})
        }
    if as_json:
        echo_json({"quotas": quota_documents(quotas)})
    else:
        print_quotas(quotas, key)
