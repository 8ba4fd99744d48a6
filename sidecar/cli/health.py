"""``throttle-sidecar health``: whether the sidecar is alive, as an exit code.

The container image uses it as its HEALTHCHECK, because the image has no curl. The command starts
every 30 s, so it imports little.
"""

from dataclasses import replace

import click

from sidecar.cli.sidecar_client import Address, Request, parse_address, request_all
from sidecar.cli.sidecar_options import own_address
from sidecar.formats.gathered_options import read_by
from sidecar.tls import TlsFiles

_DEADLINE_S = 3.0
"""/healthz answers within milliseconds as long as the daemon's event loop runs."""


def _address(text: str) -> Address:
    # As the kubelet's probes, it checks no certificate: an expired one is no reason to restart.
    return replace(parse_address(text), tls=TlsFiles(verifies=False))


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
    callback=read_by(_address, click.BadParameter, ValueError),
    metavar="URL",
    default=own_address,
    show_default="SIDECAR_HTTP_LISTEN, or 127.0.0.1:7070",
    help="The sidecar's address: host:port or a URL.",
)
@click.pass_context
def command(context: click.Context, sidecar: Address) -> None:
    """Request a sidecar's /healthz.

    The exit code is 0 if the sidecar is alive, which means that its event loop runs, and 1 if not.
    A sidecar that can't see the cluster is alive too: /readyz and the metrics show what it sees.
    """
    (answer,) = request_all([sidecar], [Request("GET", "/healthz")], deadline_s=_DEADLINE_S)
    click.echo(f"{sidecar} {answer.problem or 'is alive'}")
    context.exit(0 if answer.problem is None else 1)
