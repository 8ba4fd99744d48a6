"""``throttle-sidecar override``: an operator's factor, on one sidecar or on all of a cluster.

Each broker has a sidecar, and each sidecar decides for itself. The command therefore sends its
request to all the named sidecars at once and prints the answer of each.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from sidecar.cli.full_volumes import still_full
from sidecar.cli.options import duration
from sidecar.cli.sidecar_client import Address, Answer, Request, request_all
from sidecar.cli.sidecar_options import (
    change,
    exit_code,
    merged,
    persistence,
    report,
    sidecars_options,
    token_option,
)
from sidecar.formats.gathered_options import finite, read_by
from sidecar.formats.quantities import format_duration


def _reason(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("the reason must be text on one line, because other people will read it")
    return value


@click.group(
    "override",
    epilog="""\b
Examples:
  throttle-sidecar override set 1.0 --reason "disk is being replaced" --for 8h
  throttle-sidecar override set 0.5 --reason "migration" --for 30m \\
      --sidecars https://b1:7070,https://b2:7070 --token-file token
  throttle-sidecar override show --sidecars b1:7070,b2:7070,b3:7070
  throttle-sidecar override clear
""",
)
def command() -> None:
    """Set, clear or show an override, on one sidecar or many.

    The answer of each sidecar is printed. The exit code is 0 only if all sidecars did as requested.
    """


@command.command(
    "set",
    epilog="""\b
Examples:
  throttle-sidecar override set 1.0 --reason "disk is being replaced" --for 8h
  throttle-sidecar override set 0 --reason "throttle all producers" --for 10m \\
      --sidecars b1:7070,b2:7070,b3:7070
""",
)
@click.argument(
    "factor",
    type=click.FloatRange(0, 1),
    callback=read_by(finite, click.BadParameter, ValueError),
)
@click.option(
    "--reason",
    callback=read_by(_reason, click.BadParameter, ValueError),
    required=True,
    metavar="TEXT",
    help="The reason, which is shown with the factor.",
)
@click.option(
    "--for",
    "for_s",
    callback=duration(
        'the duration must be longer than 0 s; to end an override, run "override clear"'
    ),
    required=True,
    metavar="DURATION",
    help="For how long, such as 30m, 8h or 1d, at most 30d: it ends by itself.",
)
@sidecars_options
@token_option
@click.pass_context
def set_override(
    context: click.Context,
    *,
    factor: float,
    reason: str,
    for_s: float,
    sidecars: tuple[Address, ...],
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Override the throttle factor, from 0 (throttle producers) to 1 (release them).

    An override also lifts the stop line, even with factor 0: producers are then throttled and
    no longer refused. With a factor above 0, standard error lists the volumes that violate
    the limit, because producers continue to fill them.
    """
    # A sidecar of any version reads ISO 8601.
    body = {"factor": factor, "reason": reason, "duration": format_duration(for_s)}
    answers = change(Request("PUT", "/v1/override", body), sidecars, token_file)
    report(answers, ["Answer"], _set_cells, as_json)
    for line in still_full(answers) if factor > 0 else ():
        click.echo(line, err=True)
    context.exit(exit_code(answers))


@command.command(
    "clear",
    epilog="""\b
Examples:
  throttle-sidecar override clear
  throttle-sidecar override clear --sidecars b1:7070,b2:7070,b3:7070 --token-file token
""",
)
@sidecars_options
@token_option
@click.pass_context
def clear_override(
    context: click.Context, sidecars: tuple[Address, ...], token_file: Path | None, as_json: bool
) -> None:
    """End the override before its time."""
    answers = change(Request("DELETE", "/v1/override"), sidecars, token_file)
    report(answers, ["Answer"], _cleared_cells, as_json)
    context.exit(exit_code(answers))


@command.command(
    "show",
    epilog="""\b
Examples:
  throttle-sidecar override show
  throttle-sidecar override show --sidecars b1:7070,b2:7070,b3:7070 --json
""",
)
@sidecars_options
@click.pass_context
def show_override(context: click.Context, sidecars: tuple[Address, ...], as_json: bool) -> None:
    """Show each sidecar's factor, its source and its override, and whether the sidecars agree."""
    requests = [Request("GET", "/v1/throttle-factor"), Request("GET", "/v1/override")]
    answers = request_all(sidecars, requests)
    agree = len({_position(merged(each)) for each in answers if each.problem is None}) <= 1
    report(
        answers,
        ["Factor", "Source", "Override"],
        _override_cells,
        as_json,
        agree=agree,
    )
    if not agree:
        click.echo("The sidecars disagree: " + _disagreement(answers), err=True)
    context.exit(exit_code(answers))


def _set_cells(document: Mapping[str, object]) -> Sequence[str]:
    return [f"{_described(document.get('override'))}; {persistence(document)}"]


def _cleared_cells(document: Mapping[str, object]) -> Sequence[str]:
    what = "cleared" if document.get("cleared") else "there was none"
    cells = f"{what}; the factor is {document.get('factor')}"
    # Without a state file, or when it has the change, a restart brings nothing back.
    if document.get("state_file") in {"pending", "failed"}:
        cells += f"; {persistence(document)}"
    return [cells]


def _override_cells(document: Mapping[str, object]) -> Sequence[str]:
    factor, source = document.get("factor"), document.get("source")
    return [str(factor), str(source), _described(document.get("override"), reported_factor=False)]


def _described(override: object, *, reported_factor: bool = True) -> str:
    if not isinstance(override, dict):
        return "none"
    factor = f"factor {override.get('factor')} " if reported_factor else ""
    return f"{factor}until {override.get('until')}: {override.get('reason')}"


def _position(document: Mapping[str, object]) -> tuple[str, ...]:
    """Return the fields on which sidecars should agree; the exact end of an override may differ."""
    override = document.get("override")
    by_hand = "none"
    if isinstance(override, dict):
        by_hand = f"{override.get('factor')} {override.get('reason')}"
    return str(document.get("factor")), str(document.get("source")), by_hand


def _disagreement(answers: Sequence[Answer]) -> str:
    counts = Counter(_position(merged(each))[:2] for each in answers if each.problem is None)
    if len(counts) == 1:
        return "on the override"
    return ", ".join(
        f"{count} publish {factor} ({source})" for (factor, source), count in counts.items()
    )
