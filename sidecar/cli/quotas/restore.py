"""``throttle-sidecar quotas restore``: restore the produce quotas that sidecars have lowered.

Example: a sidecar was removed while alice was at 8.5 of 10 MB/s. The command sets 10 MB/s, and then
removes the record of the original from the cluster.
"""

import asyncio
from typing import TYPE_CHECKING

import click

from sidecar.cli.kafka_options import KafkaOptions, kafka_options, load_kafka_admin
from sidecar.cli.quotas.output import quota_text
from sidecar.cli.quotas.status import read_found
from sidecar.errors import BrokersError
from sidecar.request_time.cluster_state import must

if TYPE_CHECKING:
    # Not at run time: the Kafka client is imported when it is used.
    from sidecar.client_quotas.platform import Outcomes


@click.command(
    "restore",
    epilog="""\b
Examples:
  throttle-sidecar quotas restore --bootstrap-server localhost:9092
  throttle-sidecar quotas restore --dry-run
""",
)
@kafka_options
@click.option("--dry-run", is_flag=True, help="Print the originals, and change nothing.")
def command(kafka: KafkaOptions, dry_run: bool) -> None:
    """Restore the produce quotas that sidecars have lowered, at once and not in steps.

    The originals are read from the cluster. First stop the sidecars, or set another
    SIDECAR_ENFORCEMENT: a sidecar that still throttles lowers the quotas again.
    """
    admin = load_kafka_admin(kafka)
    found = read_found(admin)
    if not found.kept:
        click.echo("No produce quota is lowered.")
        return
    originals = {entity: kept.original for entity, kept in found.kept.items()}
    outcomes: Outcomes = {}
    if not dry_run:
        from sidecar.client_quotas.platform import KafkaQuotas  # noqa: PLC0415 - see status

        outcomes = must(asyncio.run(KafkaQuotas.of(lambda: admin).restore(originals)))
    failures = [failure.message for failure in outcomes.values() if failure is not None]
    for entity, original in originals.items():
        if outcomes.get(entity) is None:
            was = "would be restored" if dry_run else "restored"
            click.echo(f"{entity}: {was} to {quota_text(original)}")
    if failures:
        raise BrokersError("\n".join(failures))
