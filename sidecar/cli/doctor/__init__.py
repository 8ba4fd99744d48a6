"""``throttle-sidecar doctor``: is everything in place, and what would happen?

The command gathers facts (``gather``), and derives findings and recommended values from them by
pure functions (``findings``, ``recommendation``). It changes nothing.

It imports its dependencies when it is called, so that its help is quick.
"""

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidecar.cli.options import duration, settings_options
from sidecar.cli.sidecar_client import Address, parse_address
from sidecar.cli.sidecar_options import sidecars_of, sidecars_options
from sidecar.formats.gathered_options import read_by
from sidecar.threads import run_main

if TYPE_CHECKING:
    from sidecar.cli.doctor.recommendation import Recommendation
    from sidecar.cli.doctor.verdicts import Finding


def _url(text: str) -> str:
    return str(parse_address(text, default_port=9090))


@click.command(
    "doctor",
    epilog="""\b
Examples:
  throttle-sidecar doctor --config sidecar.toml
  throttle-sidecar doctor --sidecars b1:7070,b2:7070,b3:7070 --prometheus http://prometheus:9090
  throttle-sidecar doctor --json | jq '.findings[] | select(.verdict != "ok")'
""",
)
@settings_options
@sidecars_options
@click.option(
    "--prometheus",
    callback=read_by(_url, click.BadParameter, ValueError),
    metavar="URL",
    help="The Prometheus that scrapes the sidecars.",
)
@click.option(
    "--away",
    "away_s",
    default="8h",
    show_default=True,
    callback=duration("somebody needs some time to free space"),
    metavar="DURATION",
    help="How long until somebody frees space, for the recommended limit.",
)
@click.option(
    "--watch",
    "watch_s",
    default="5s",
    show_default=True,
    callback=duration("two polls at the same time show no rate"),
    metavar="DURATION",
    help="How far the two polls for the fill rates are apart.",
)
@click.pass_context
def command(
    context: click.Context,
    *,
    config: Path | None,
    properties: Path | None,
    sidecars: tuple[Address, ...],
    as_json: bool,
    prometheus: str | None,
    away_s: float,
    watch_s: float,
) -> None:
    """Examine the whole installation, and say what would happen at the limit.

    The command reads settings, files, every broker, every named sidecar and Prometheus, and changes
    nothing. Besides --sidecars, it asks the sidecars of SIDECAR_PEERS. Each finding is OK, warn,
    fail or not known, with what to do. It recommends a limit, a soft limit and a stop line, with
    the arithmetic, from the highest known fill rate: of the volume history, Prometheus, the sidecar
    or two polls.

    The exit code is 0 if everything is OK, 1 if there is a warning or something is not known, and 2
    if something fails.
    """
    from sidecar import logs  # noqa: PLC0415 - see the module's docstring
    from sidecar.cli.doctor.findings import findings  # noqa: PLC0415
    from sidecar.cli.doctor.gather import gather  # noqa: PLC0415
    from sidecar.cli.doctor.recommendation import recommendation  # noqa: PLC0415
    from sidecar.cli.doctor.verdicts import Finding, exit_code  # noqa: PLC0415
    from sidecar.settings import load  # noqa: PLC0415

    # Failures are findings.
    logs.set_up("text", "critical")
    loaded = load(environ=os.environ, config=config, properties=properties)
    settings, recommended = loaded.found, None
    if settings is None:
        to_do = 'mend it: "run" does not start'
        found = [Finding("settings", "fail", each, to_do) for each in loaded.problems]
        what = "brokers and sidecars were not asked, because the settings can't be used"
        found.append(Finding("all else", "not known", what, "run this command again then"))
    elif settings.kafka_admin is None or settings.limit is None:
        what = "the sidecar is disabled, or a function decides: there is nothing else to examine"
        found = [Finding("settings", "warn", what, "set brokers and a limit")]
    else:
        asked = sidecars_of(settings, sidecars)
        facts = run_main(gather(loaded, asked, prometheus, away_s=away_s, watch_s=watch_s))
        found, recommended = findings(facts), recommendation(facts)
    (_print_json if as_json else _print_table)(found, recommended)
    context.exit(exit_code(found))


def _print_json(found: "Sequence[Finding]", recommended: "Recommendation | None") -> None:
    from sidecar.cli.doctor.verdicts import worst  # noqa: PLC0415

    document = {
        "verdict": worst(found),
        "findings": [dataclasses.asdict(each) for each in found],
        "recommended": None if recommended is None else dict(recommended.settings),
        "arithmetic": [] if recommended is None else recommended.lines,
    }
    click.echo(json.dumps(document, indent=2))


def _print_table(found: "Sequence[Finding]", recommended: "Recommendation | None") -> None:
    from sidecar.cli.tables import print_rows  # noqa: PLC0415 - so that --json needs no rich
    from sidecar.logs import printable  # noqa: PLC0415

    rows: list[list[str]] = []
    bad: list[int] = []
    for each in found:
        if each.verdict == "fail":
            bad.append(len(rows))
        verdict = "OK" if each.verdict == "ok" else each.verdict
        rows.append([verdict, each.name, each.what])
        if each.to_do:
            rows.append(["", "", f"-> {each.to_do}"])
    print_rows(["Verdict", "What", "Finding, and what to do"], rows, bad)
    if recommended is None:
        if any(each.verdict == "fail" and each.name in {"settings", "brokers"} for each in found):
            return  # no volume was read, at any time
        click.echo(
            "No limit is recommended: no volume is known to fill, or a throttle slows it now. Run"
            " this command again at the busiest time without a throttle, or use --prometheus."
        )
        return
    click.echo("Recommended:")
    for line in recommended.lines:
        click.echo(printable(f"- {line}"))
