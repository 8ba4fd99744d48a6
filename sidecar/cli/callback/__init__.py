"""``throttle-sidecar callback``: the quota callback's jar, which is part of this program.

Each subcommand has its own file, which is imported when the subcommand is called.
"""

import click

from sidecar.cli import LazyGroup

SUBCOMMANDS = {
    "copy": "Copy the jar into a broker's folder.",
}
"""Each subcommand and its short help."""


@click.group(
    "callback",
    cls=LazyGroup,
    package="sidecar.cli.callback",
    summaries=SUBCOMMANDS,
    epilog="""\b
Examples:
  throttle-sidecar callback copy /opt/kafka/libs
""",
)
def command() -> None:
    """Copy the jar that makes brokers apply the throttle factor.

    A broker's configuration also needs two lines, which are in docs/quota-callback.md.
    """
