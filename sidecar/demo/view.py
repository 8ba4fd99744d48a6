"""Draws the demo's story in a terminal: the steps, the volumes, what each sidecar says."""

import shlex
from pathlib import Path

from rich.console import Group, RenderableType
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from sidecar.demo.story import Step, Story, VolumeNow

_BAR_CELLS = 32


def draw(story: Story) -> RenderableType:
    """The story as it stands."""
    parts: list[RenderableType] = [_steps(story)]
    if story.volumes:
        parts.append(_volumes(story))
    return Group(*parts)


def summary(story: Story) -> Table:
    """The table of measured times, at the end."""
    table = Table(title="What was seen", title_justify="left")
    table.add_column("step", overflow="fold")
    table.add_column("seconds", justify="right")
    table.add_column("measured from")
    for step in story.steps:
        seconds = "not seen" if step.seconds is None else f"{step.seconds:.2f}"
        table.add_row(step.title, seconds, step.measured_from)
    return table


def addresses(story: Story, bootstrap: str) -> str:
    """What to try while the demo is left running."""
    first = story.sidecars[0]
    urls = ",".join(sidecar.url for sidecar in story.sidecars)
    lines = ["", "It is left running until Ctrl-C. Brokers: " + bootstrap, "Try:"]
    lines += [f"  curl -s {first.url}/v1/{what}" for what in ("throttle-factor", "volumes")]
    lines += [
        f"  curl -s {first.url}/metrics | grep ^kafka_throttle",
        *(f"  throttle-sidecar override {words}" for words in _overrides(urls, story.token_file)),
        f"  {first.url}/docs in a browser",
    ]
    lines += [f"Log of sidecar {sidecar.broker_id}: {sidecar.log}" for sidecar in story.sidecars]
    return "\n".join(lines)


def _overrides(urls: str, token_file: Path | None) -> list[str]:
    show = f"show --sidecars {urls}"
    if token_file is None:
        return [show]
    change = f"--sidecars {urls} --token-file {shlex.quote(str(token_file))}"
    return [f"set 0.5 --reason 'to try it' --for PT1M {change}", show, f"clear {change}"]


def _steps(story: Story) -> Table:
    grid = Table.grid(padding=(0, 1))
    for step in story.steps:
        grid.add_row(_mark(step), step.title, _seconds(step))
    return grid


def _mark(step: Step) -> RenderableType:
    if step.failed:
        return Text("✗", "red")
    return Spinner("dots") if step.seconds is None else Text("✓", "green")


def _seconds(step: Step) -> Text:
    return Text("" if step.seconds is None else f"{step.seconds:.2f} s", "dim")


def _volumes(story: Story) -> Table:
    grid = Table.grid(padding=(0, 1))
    for volume in story.volumes:
        violates = volume.available_bytes <= story.limit_bytes
        grid.add_row(
            "  " + volume.name,
            _bar(volume, story.limit_bytes),
            Text(f"{volume.available_bytes / 1e6:.1f} MB left", "red" if violates else ""),
        )
    for broker_id, heard in sorted(story.heard.items()):
        style = "green" if heard.factor == 1.0 else "bold red"
        grid.add_row(f"  sidecar {broker_id}", Text(f"factor {heard.factor}", style), "")
    return grid


def _bar(volume: VolumeNow, limit_bytes: int) -> Text:
    """What is used from the left, and where the limit is."""
    used = round(_BAR_CELLS * (1 - volume.available_bytes / volume.total_bytes))
    limit = round(_BAR_CELLS * (1 - limit_bytes / volume.total_bytes))
    cells = "".join("█" if cell < used else "░" for cell in range(_BAR_CELLS))
    return Text(f"{cells[:limit]}│{cells[limit:]}", "red" if used >= limit else "cyan")
