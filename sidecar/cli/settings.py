"""``throttle-sidecar settings``: every setting, where it came from and what it means.

Secrets are masked. What is missing or wrong is marked at its setting and listed on standard error,
with exit code 2.
"""

import dataclasses
import json
import os
from pathlib import Path

import click

from sidecar.cli.options import settings_options
from sidecar.errors import SettingsError
from sidecar.settings import Loaded, SettingRow, load

_NAMES = """\
Environment: SIDECAR_ and the name in capitals, with _ for each dot.
Properties: client.quota.callback.static. and the name, as the Strimzi plugin has it.
TOML: the name's words grouped in tables; --json has each setting's own keys."""

_COLUMN = 44
"""How many characters of a name fit into the first column at a width of 80."""


@click.command(
    "settings",
    epilog="""\b
Examples:
  throttle-sidecar settings
  throttle-sidecar settings --properties /opt/kafka/config/server.properties
  throttle-sidecar settings --json | jq '.settings[] | select(.origin != "default")'
""",
)
@settings_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(config: Path | None, properties: Path | None, as_json: bool) -> None:
    """Print every setting with its value, origin, default, unit and meaning.

    Secrets are masked. What is missing or wrong is marked at its setting, and the exit code is 2
    then; standard error lists all of it.
    """
    found = load(environ=os.environ, config=config, properties=properties)
    if as_json:
        click.echo(_as_json(found))
    else:
        _print_table(found.rows)
        for notice in found.notices:
            click.echo(f"Note: {notice}", err=True)
    if found.problems:
        raise SettingsError(found.problems)


def _as_json(found: Loaded) -> str:
    document = {
        "settings": [dataclasses.asdict(row) for row in found.rows],
        "notices": found.notices,
        "problems": found.problems,
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _print_table(rows: tuple[SettingRow, ...]) -> None:
    """One block for each setting: name and meaning beside value, origin, default and unit.

    Six columns would leave 13 characters to each at a width of 80.
    """
    # Here and not above, so that --json needs none of it.
    from rich import box  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(
        box=box.HORIZONTALS, show_lines=True, caption=_NAMES, caption_justify="left", expand=True
    )
    table.add_column("Setting and what it means", ratio=5, overflow="fold")
    table.add_column("Value", ratio=3, overflow="fold")
    for row in rows:
        not_shown = "refused" if row.problems and row.origin != "default" else "not set"
        value = (row.value, "bold") if row.value else (not_shown, "dim")
        problems = [(f"\nProblem: {line}", "bold red") for line in row.problems]
        origin = "" if row.origin == "default" else f"from {row.origin}\n"
        table.add_row(
            Text.assemble((_folded(row.name), "bold"), "\n", row.meaning, *problems),
            Text.assemble(value, f"\n{origin}default: {row.default}\nunit: {row.unit}"),
        )
    Console().print(table)


def _folded(name: str) -> str:
    """A name that is too long for its column at 80, on two lines that break at a dot."""
    if len(name) <= _COLUMN:
        return name
    dot = name.rindex(".", 0, _COLUMN)
    return f"{name[:dot]}\n  {name[dot:]}"
