"""``throttle-sidecar forget``: a broker or disk that will not come back no longer throttles anyone.

If the last reading of a fenced broker violated the limit, it counts until the broker answers, is
unregistered or is forgotten. The same holds for a log dir that is offline, even if its broker is
alive. The command asks every sidecar of the cluster, because each one decides for itself.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import click

from sidecar.cli.sidecar_client import Address, Request
from sidecar.cli.sidecar_options import (
    change,
    exit_code,
    persistence,
    report,
    sidecars_options,
    token_option,
)


@click.command(
    "forget",
    epilog="""\b
Examples:
  throttle-sidecar forget 3 --reason "its disk is gone"
  throttle-sidecar forget 3 --log-dir /data/d1
  throttle-sidecar forget 3 --sidecars b1:7070,b2:7070 --token-file token
""",
)
@click.argument("broker_id", type=click.IntRange(0, 2**31 - 1))
@click.option(
    "--log-dir", metavar="PATH", help="Forget this log dir alone, which its broker reports offline."
)
@click.option(
    "--reason",
    metavar="TEXT",
    help="The reason, which is logged. A terminal asks for it.",
)
@sidecars_options
@token_option
@click.pass_context
def command(
    context: click.Context,
    *,
    broker_id: int,
    log_dir: str | None,
    reason: str | None,
    sidecars: tuple[Address, ...],
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Forget the last reading of a broker, or of a log dir, that will not come back.

    The answer of each sidecar is printed. The exit code is 0 only if all sidecars forgot it. A
    sidecar without a reading of it says so.
    """
    path = f"/v1/brokers/{broker_id}"
    if reason is None and sys.stdin.isatty():
        reason = click.prompt("Reason", default="", show_default=False, err=True)
    query = {"path": log_dir, "reason": reason}
    path += "/log-dirs" if log_dir is not None else ""
    given = "&".join(f"{name}={quote(text, safe='')}" for name, text in query.items() if text)
    answers = change(Request("DELETE", f"{path}?{given}" if given else path), sidecars, token_file)
    report(answers, ["Answer"], _forgotten_cells, as_json)
    context.exit(exit_code(answers))


def _forgotten_cells(document: Mapping[str, object]) -> Sequence[str]:
    log_dirs = document.get("log_dirs")
    count = len(log_dirs) if isinstance(log_dirs, list) else 0
    volumes = f"{count} volume{'' if count == 1 else 's'}"
    return [f"forgot {volumes}; the factor is {document.get('factor')}; {persistence(document)}"]
