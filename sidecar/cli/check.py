"""``throttle-sidecar check``: ask the running sidecar, poll the cluster once, and compare.

The command imports its dependencies when it is called, so that its help is quick.
"""

import dataclasses
from pathlib import Path
from typing import Final

import click

from sidecar.cli.options import load_settings, settings_options
from sidecar.cli.sidecar_client import Address, Request, request_all
from sidecar.cli.sidecar_options import sidecars_of, sidecars_options
from sidecar.threads import run_main

_EXIT_CODES: Final = {"within limit": 0, "limit violated": 1, "unknown": 2}
_DECISION: Final = Request("GET", "/v1/throttle-factor")


@click.command(
    "check",
    epilog="""\b
Examples:
  throttle-sidecar check --config sidecar.toml
  throttle-sidecar check --no-sidecar
  throttle-sidecar check --properties /opt/kafka/config/server.properties
  throttle-sidecar check --json | jq '.volumes[] | select(.limit_violated)'
  throttle-sidecar check >/dev/null || echo "full, or not readable"
""",
)
@settings_options
@sidecars_options
@click.option(
    "--no-sidecar", is_flag=True, help="Poll the cluster only, without the running sidecar."
)
@click.pass_context
def command(  # noqa: PLR0917 - one argument for each option
    context: click.Context,
    config: Path | None,
    properties: Path | None,
    sidecars: tuple[Address, ...],
    as_json: bool,
    no_sidecar: bool,
) -> None:
    """Read the cluster once and report whether its volumes are within the limit.

    The command also asks the running sidecar for its decision, and reports how its own poll
    differs.

    The exit code is 0 if all volumes are within the limit, and 1 if a volume violates it, by the
    poll or by the sidecar. It is 2 if that is unknown: the brokers can't be listed, or a broker did
    not answer and no other broker has a violation, or "run" would not start with these settings.
    Standard error then shows why.
    """
    settings = load_settings(config, properties).settings

    from sidecar import logs  # noqa: PLC0415 - see the module's docstring
    from sidecar.cli.observe_once import check_cluster  # noqa: PLC0415
    from sidecar.cli.running_sidecar import ALONE, RunningSidecar  # noqa: PLC0415
    from sidecar.daemon.start_files import check_state_folder, read_start_files  # noqa: PLC0415

    read_start_files(settings)
    # A disabled sidecar stores no state.
    if settings.state_file is not None and settings.check_interval_s > 0.0:
        check_state_folder(settings.state_file)
    # The command reports a failure once, below.
    logs.set_up("text", "error")
    seen = run_main(check_cluster(settings))
    answers = [] if no_sidecar else request_all(sidecars_of(settings, sidecars), [_DECISION])
    snapshot = seen.view.snapshot
    running = [RunningSidecar.of(each, snapshot.memory.cluster_id) for each in answers]
    reason = logs.printable(seen.reason)
    if as_json:
        click.echo(seen.as_json([dataclasses.asdict(each) for each in running]))
    else:
        from sidecar.cli.tables import print_check  # noqa: PLC0415

        print_check(seen)
        polled = snapshot.decision.violations
        for sentence in [text for each in running for text in each.sentences(polled)]:
            click.echo(logs.printable(sentence))
        if seen.verdict != "unknown":
            if no_sidecar:
                click.echo(ALONE)
            click.echo(f"{seen.verdict.capitalize()}: {reason}")
    if seen.verdict == "unknown":
        click.echo(f"Unknown: {reason}", err=True)
    is_full = any(each.violating for each in running)
    context.exit(_EXIT_CODES["limit violated" if is_full else seen.verdict])
