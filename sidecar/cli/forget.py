"""``throttle-sidecar forget``: a broker that will not return no longer throttles producers.

The last reading of a fenced broker that violated the limit counts until it answers, is unregistered
or is forgotten; by every sidecar of the cluster, since each decides for itself.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from sidecar.cli.sidecar_client import Address, Request
from sidecar.cli.sidecar_options import (
    AnswerTable,
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
  throttle-sidecar forget 3
  throttle-sidecar forget 3 --sidecars b1:7070,b2:7070 --token-file token
""",
)
@click.argument("broker_id", type=click.IntRange(0, 2**31 - 1))
@sidecars_options
@token_option
@click.pass_context
def command(
    context: click.Context,
    broker_id: int,
    sidecars: tuple[Address, ...],
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Forget the last reading of a broker that will not return.

    Every sidecar's answer is printed. The exit code is 0 only if all forgot it; a sidecar that has
    no reading of it answers so.
    """
    answers = change(Request("DELETE", f"/v1/brokers/{broker_id}"), sidecars, token_file)
    report(answers, AnswerTable(["Answer"], _forgotten_cells), as_json)
    context.exit(exit_code(answers))


def _forgotten_cells(document: Mapping[str, object]) -> Sequence[str]:
    log_dirs = document.get("log_dirs")
    count = len(log_dirs) if isinstance(log_dirs, list) else 0
    volumes = f"{count} volume{'' if count == 1 else 's'}"
    return [f"forgot {volumes}; the factor is {document.get('factor')}; {persistence(document)}"]
