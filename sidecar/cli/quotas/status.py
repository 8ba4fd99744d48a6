"""``throttle-sidecar quotas status``: the produce quotas that sidecars have lowered.

Example: alice had 10 MB/s and has 8.5 MB/s now; clients without a quota of their own have 6 MB/s.
"""

import asyncio
from typing import TYPE_CHECKING

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.quotas.output import echo_json, quota_text
from sidecar.request_time.cluster_state import must

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when it is used.
    from sidecar.client_quotas.plan import Found
    from sidecar.settings import KafkaAdmin


@click.command(
    "status",
    epilog="""\b
Examples:
  throttle-sidecar quotas status --bootstrap-server localhost:9092
  throttle-sidecar quotas status --json
""",
)
@kafka_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(kafka: KafkaOptions, as_json: bool) -> None:
    """Print the produce quotas that sidecars have lowered (SIDECAR_ENFORCEMENT=client-quotas).

    The originals are read from the cluster, so no sidecar has to run.
    """
    found = read_found(load_kafka_admin(kafka))
    rows = [
        (entity, kept.original, found.quotas.get(entity)) for entity, kept in found.kept.items()
    ]
    if as_json:
        echo_json(
            {
                "quotas": [
                    {"entity": entity.parts(), "original": original, "now": now}
                    for entity, original, now in rows
                ]
            }
        )
    elif rows:
        from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich

        shown = [[str(each), quota_text(before), quota_text(now)] for each, before, now in rows]
        print_rows(["Entity", "Original", "Now"], shown, ())
    else:
        click.echo("No produce quota is lowered.")


def read_found(admin: "KafkaAdmin") -> "Found":
    """Return the produce quotas with their originals.

    Raises:
        BrokersError: no broker answered.
    """
    from sidecar.client_quotas.platform import KafkaQuotas  # noqa: PLC0415 - see above

    return must(asyncio.run(KafkaQuotas.of(lambda: admin).read()))
