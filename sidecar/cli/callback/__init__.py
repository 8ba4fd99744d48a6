"""``throttle-sidecar callback``: the quota callback's jar, which came with this program.

Each subcommand is in a file of its own and imported when it is called, as the commands are.
"""

import click

from sidecar.cli import LazyGroup

SUBCOMMANDS = {
    "copy": "Copy the jar into a broker's folder.",
}
"""Every subcommand and its help in short."""


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
    """Put the jar by which brokers obey the throttle factor where they find it.

    docs/quota-callback.md has the two lines that a broker's configuration needs besides.
    """
