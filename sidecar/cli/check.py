"""``throttle-sidecar check``: poll the cluster once and compare its volumes with the limit.

The command imports its dependencies when it is called, so that its help is quick.
"""

import asyncio
from pathlib import Path
from typing import Final

import click

from sidecar.cli.options import load_settings, settings_options

_EXIT_CODES: Final = {"within limit": 0, "limit violated": 1, "unknown": 2}


@click.command(
    "check",
    epilog="""\b
Examples:
  throttle-sidecar check --config sidecar.toml
  throttle-sidecar check --properties /opt/kafka/config/server.properties
  throttle-sidecar check --json | jq '.volumes[] | select(.limit_violated)'
  throttle-sidecar check >/dev/null || echo "full, or not readable"
""",
)
@settings_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.pass_context
def command(
    context: click.Context, config: Path | None, properties: Path | None, as_json: bool
) -> None:
    """Read the cluster once and report whether its volumes are within the limit.

    The exit code is 0 if all volumes are within the limit, and 1 if a volume violates it. It is 2
    if that is unknown: the brokers can't be listed, or a broker did not answer and no other broker
    has a violation, or "run" would not start with these settings. Standard error then shows why.
    """
    settings = load_settings(config, properties).settings

    from sidecar import logs  # noqa: PLC0415 - see the module's docstring
    from sidecar.cli.observe_once import check_cluster  # noqa: PLC0415
    from sidecar.daemon.start_files import read_start_files  # noqa: PLC0415

    read_start_files(settings)
    # The command reports a failure once, below.
    logs.set_up("text", "error")
    seen = asyncio.run(check_cluster(settings))
    reason = logs.printable(seen.reason)
    if as_json:
        click.echo(seen.as_json())
    else:
        from sidecar.cli.tables import print_check  # noqa: PLC0415

        print_check(seen)
        if seen.verdict != "unknown":
            click.echo(f"{seen.verdict.capitalize()}: {reason}")
    if seen.verdict == "unknown":
        click.echo(f"Unknown: {reason}", err=True)
    context.exit(_EXIT_CODES[seen.verdict])
