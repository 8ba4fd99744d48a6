"""``throttle-sidecar quotas status``: the produce quotas that sidecars have lowered.

Example: alice had 10 MB/s and has 8.5 MB/s now; clients without a quota of their own have 6 MB/s.
"""

import asyncio
import os
from typing import TYPE_CHECKING

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.quotas.output import echo_json, quota_text
from sidecar.request_time.cluster_state import must

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when it is used.
    from sidecar.client_quotas.platform import KafkaQuotas


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

    They are lowered while a volume is full or soon will be, or for users that storage budgets slow.
    The originals are read from the cluster, so no sidecar has to run. /v1/budgets of a sidecar has
    these users.
    """
    found = must(asyncio.run(load_platform(kafka).read()))
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


def load_platform(kafka: KafkaOptions) -> "KafkaQuotas":
    """Return what reads and sets quotas: Aiven's API if the daemon's settings name a service."""
    from sidecar.client_quotas.aiven import aiven_quotas  # noqa: PLC0415 - see above
    from sidecar.client_quotas.platform import KafkaQuotas  # noqa: PLC0415
    from sidecar.settings import read_daemon_values  # noqa: PLC0415

    if kafka.bootstrap_server is None and kafka.command_config is None:
        settings = read_daemon_values(os.environ, kafka.config, kafka.properties)
        if (aiven := aiven_quotas(settings)) is not None:
            return aiven
    admin = load_kafka_admin(kafka)
    return KafkaQuotas.of(lambda: admin)
