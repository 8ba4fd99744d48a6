"""``throttle-sidecar health``: whether the sidecar lives, as an exit code.

The container image's HEALTHCHECK, since an image that needs no shell has no curl either. It imports
little: it is started every half minute.
"""

import click

from sidecar.cli.sidecar_client import Address, Request, parse_address, request_all
from sidecar.cli.sidecar_options import own_address

_DEADLINE_S = 3.0
"""/healthz answers within milliseconds as long as the daemon's loop turns."""


def _address(_context: click.Context, _parameter: click.Parameter, value: str) -> Address:
    try:
        return parse_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(
    "health",
    epilog="""\b
Examples:
  throttle-sidecar health
  throttle-sidecar health --sidecar broker-0:7070
""",
)
@click.option(
    "--sidecar",
    callback=_address,
    metavar="URL",
    default=own_address,
    show_default="SIDECAR_HTTP_LISTEN, or 127.0.0.1:7070",
    help="The sidecar's address: host:port or a URL.",
)
@click.pass_context
def command(context: click.Context, sidecar: Address) -> None:
    """Request a sidecar's /healthz.

    The exit code is 0 when it lives, which it does as long as its loop turns, and 1 when not. It
    lives when it can't see the cluster, too: /readyz and the metrics show that.
    """
    (answer,) = request_all([sidecar], [Request("GET", "/healthz")], deadline_s=_DEADLINE_S)
    click.echo(f"{sidecar} {answer.problem or 'lives'}")
    context.exit(0 if answer.problem is None else 1)
