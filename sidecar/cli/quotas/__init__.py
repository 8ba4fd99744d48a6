"""``throttle-sidecar quotas``: what brokers have to give, who gets how much, in one command each.

Each subcommand is in a file of its own and imported when it is called, as the commands are.

Example: ``throttle-sidecar quotas apply`` imports ``sidecar.cli.quotas.apply`` and calls its
``command``.
"""

import click

from sidecar.cli import LazyGroup

SUBCOMMANDS = {
    "capacity": "Print how much thread time each broker has to give.",
    "plan": "Share it out, and print what changes and the commands that do it.",
    "apply": "Set the planned quotas.",
    "show": "Print the quotas that are set.",
    "diff": "Compare the plan with the quotas that are set.",
    "watch": "Renew the plan as tenants come and go.",
}
"""Every subcommand and its help in short."""


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
    """Plan request_percentage (KIP-124): who may use how much of the brokers' threads.

    A percentage is of one thread: 200 % is two threads' whole time on each broker. Brokers are
    reached as by Kafka's tools, with --bootstrap-server and --command-config, or by the daemon's
    settings.
    """
