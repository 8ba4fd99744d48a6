"""Tables for people: readable at 80 columns and in a pipe.

Text from brokers and sidecars is printed as plain text. It can't contain markup or control the
terminal.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sidecar.api.documents import BrokerDocument, VolumeDocument
from sidecar.cli.observe_once import ClusterCheck
from sidecar.logs import printable
from sidecar.settings.keys import stop_line_key
from sidecar.throttle.limits import Limit
from sidecar.throttle.misfits import sentences
from sidecar.throttle.reason import without_broker
from sidecar.throttle.sizes import size

_NARROWEST: Final = 80
"""The columns for which the tables are made."""

_STYLES: Final = {
    "ok": "green",
    "VIOLATED": "bold red",
    "AT STOP LINE": "bold red",
    "offline": "yellow",
    "unreadable": "yellow",
}


def print_check(seen: ClusterCheck) -> None:
    """Print every volume with its verdict, then the problems of brokers and of the stop line."""
    volumes = list(seen.view.volumes())
    if volumes:
        _print(_volume_table(volumes, seen.view.snapshot.rules.required_limit))
    # The verdict already names this failure.
    reported = seen.reason if seen.verdict == "unknown" else ""
    for line in (
        *_unread_lines(volumes),
        *_broker_lines(seen.view.brokers(), reported),
        *_stop_lines(seen),
    ):
        click.echo(printable(line))


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[str]], bad: Iterable[int]) -> None:
    """Print a table of text.

    Args:
        columns: the headings.
        rows: each has as many cells as there are headings.
        bad: the numbers of the rows to print in red.
    """
    table = _table()
    for column in columns:
        table.add_column(column, overflow="fold")
    red = set(bad)
    for number, row in enumerate(rows):
        style = "red" if number in red else ""
        table.add_row(*(Text(printable(cell), style) for cell in row))
    _print(table)


def _print(table: Table) -> None:
    console = Console(highlight=False)
    # rich would leave out columns, such as the broker. A narrower terminal breaks the lines.
    console.width = max(console.width, _NARROWEST)
    console.print(table)


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)


def _volume_table(volumes: Sequence[VolumeDocument], limit: Limit) -> Table:
    table = _table()
    table.add_column("Broker", justify="right")
    table.add_column("Log dir", overflow="fold")
    for heading in ("Total", "Available", "Ratio", "Limit"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Verdict", no_wrap=True)
    for volume in volumes:
        ratio = volume.available_ratio
        verdict = "ok" if volume.state == "online" else str(volume.state)
        if volume.limit_violated:
            verdict = "AT STOP LINE" if volume.stop_line_violated else "VIOLATED"
        table.add_row(
            str(volume.broker_id),
            Text(printable(volume.log_dir)),
            _size(volume.total_bytes),
            _size(volume.available_bytes),
            "-" if ratio is None else f"{ratio:.1%}",
            limit.describe(),
            Text(verdict, _STYLES[verdict]),
        )
    return table


def _unread_lines(volumes: Iterable[VolumeDocument]) -> Iterable[str]:
    for volume in volumes:
        if volume.state != "online":
            yield f"Broker {volume.broker_id} {volume.log_dir}: {volume.unread_reason}"


def _broker_lines(brokers: Iterable[BrokerDocument], reported: str) -> Iterable[str]:
    alike: dict[str, list[str]] = {}
    for broker in brokers:
        name = f"{broker.broker_id} ({broker.address})"
        if broker.state == "fenced":
            yield f"Broker {name} is fenced."
        if broker.last_failure is not None:
            failure = broker.last_failure
            what = without_broker(failure.message, broker.broker_id, broker.address)
            text = failure.kind if what in reported else f"{failure.kind}: {what}"
            alike.setdefault(text, []).append(name)
    for text, names in alike.items():
        yield f"Broker{'s' if len(names) > 1 else ''} {', '.join(names)}: {text}"


def _stop_lines(seen: ClusterCheck) -> Iterable[str]:
    recommended = seen.recommended_stop_line
    if recommended is not None and (setting := stop_line_key(type(recommended.line))):
        yield from recommended.sentences(setting)
    for sentence in sentences(seen.misfits):
        yield f"{sentence[0].upper()}{sentence[1:]}."


def _size(count: int | None) -> str:
    return "-" if count is None else size(count)
