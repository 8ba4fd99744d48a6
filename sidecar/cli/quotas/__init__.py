"""``throttle-sidecar quotas``: the brokers' capacity, its distribution among tenants, and quotas.

Each subcommand has its own file, which is imported when the subcommand is called.

Example: ``throttle-sidecar quotas apply`` imports ``sidecar.cli.quotas.apply`` and calls its
``command``.
"""

import click

from sidecar.cli import LazyGroup

SUBCOMMANDS = {
    "capacity": "Print each broker's capacity: the time of its threads.",
    "plan": "Share the capacity among tenants; print the changes and the commands for them.",
    "apply": "Set the planned quotas.",
    "show": "Print the quotas that are set.",
    "diff": "Compare the plan with the quotas that are set.",
    "watch": "Update the quotas as tenants come and go.",
    "status": "Print the produce quotas that sidecars have lowered.",
    "restore": "Restore the produce quotas that sidecars have lowered.",
}
"""Each subcommand and its short help."""


@click.group(
    "quotas",
    cls=LazyGroup,
    package="sidecar.cli.quotas",
    summaries=SUBCOMMANDS,
    epilog="""\b
Examples:
  throttle-sidecar quotas capacity --bootstrap-server localhost:9092
  throttle-sidecar quotas plan --tenants 50 --capacity 6400
  throttle-sidecar quotas plan --tenants-from scram --reserve 200 --internal mirror
  throttle-sidecar quotas apply --tenants-from tenants.toml
  throttle-sidecar quotas watch --tenants-from acls --dry-run
""",
)
def command() -> None:
    """Plan request_percentage (KIP-124): how much of the brokers' threads each tenant may use.

    100 % is the whole time of one thread, so 200 % is the whole time of two threads on each broker.
    The commands reach brokers with --bootstrap-server and --command-config, as Kafka's tools do, or
    with the daemon's settings.
    """
