"""Draws the demo's scenario: in a terminal while it runs, and as a picture at the end."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from kafka_lab.loads import Load
from kafka_lab.scenario import Scenario, Step, VolumeNow
from kafka_lab.series import Series
from sidecar.cli.chart import Line, Mark, Panel, svg

_BAR_CELLS = 32
_SPARKS = " ▁▂▃▄▅▆▇█"
_SPARK_S = 1.0
"""The time that a cell of the throughput line represents."""


def draw(scenario: Scenario, height: int = 1000) -> RenderableType:
    """Return the scenario's present state; on a low terminal, the first steps are left out."""
    below = len(scenario.volumes) + len(scenario.received) + len(scenario.loads) + 4
    parts: list[RenderableType] = [_steps(scenario.steps[-max(1, height - below) :])]
    if scenario.captions:
        parts.append(Text(scenario.captions[-1][1], "bold"))
    if scenario.volumes:
        parts.append(_volumes(scenario))
    if scenario.loads:
        parts.append(_loads(scenario))
    return Group(*parts)


def picture(scenario: Scenario) -> str:
    """Return an SVG with throughput and free space over time, and the table of steps.

    Raises:
        ValueError: nothing was measured.
    """
    begin = min((at for load in scenario.loads for at, _ in load.traffic.samples), default=0.0)
    moments = [Mark(name, at - begin) for name, at in scenario.moments.items()]
    throughput = [
        Line(load.name, _scaled(Series(load.traffic.samples.rates(0.25, 1.0)), begin), style)
        for style, load in enumerate(scenario.loads)
    ]
    free = [Line("the fullest volume", _scaled(scenario.free, begin))]
    limit = [Mark("limit", scenario.limit_bytes / 1e6)]
    rows = [
        (step.title, "not seen" if step.seconds is None else f"{step.seconds:.2f} s")
        for step in scenario.steps
    ]
    panels = [
        Panel("throughput, MB/s", throughput, moments),
        Panel("free space, MB", free, moments, limit),
    ]
    return svg("Brokers obey the throttle factor", "seconds", panels, rows)


def _scaled(series: Series, begin: float) -> list[tuple[float, float]]:
    return [(at - begin, value / 1e6) for at, value in series if at >= begin]


def summary(scenario: Scenario) -> Table:
    """Return the table of measured times for the end."""
    table = Table(title="What was seen", title_justify="left")
    table.add_column("step", overflow="fold")
    table.add_column("seconds", justify="right")
    table.add_column("measured from")
    for step in scenario.steps:
        seconds = "not seen" if step.seconds is None else f"{step.seconds:.2f}"
        table.add_row(step.title, seconds, step.measured_from)
    return table


def addresses(scenario: Scenario, bootstrap: str) -> str:
    """Return the commands to try while the demo keeps running."""
    first = scenario.sidecars[0]
    urls = ",".join(sidecar.url for sidecar in scenario.sidecars)
    lines = ["", "The cluster runs until Ctrl-C. Brokers: " + bootstrap, "Try:"]
    lines += [f"  curl -s {first.url}/v1/{what}" for what in ("throttle-factor", "volumes")]
    lines += [
        f"  curl -s {first.url}/metrics | grep ^kafka_throttle",
        *(
            f"  throttle-sidecar override {words}"
            for words in _overrides(urls, scenario.token_file)
        ),
        f"  {first.url}/docs in a browser",
    ]
    lines += [f"Log of sidecar {sidecar.broker_id}: {sidecar.log}" for sidecar in scenario.sidecars]
    return "\n".join(lines)


def _overrides(urls: str, token_file: Path | None) -> list[str]:
    show = f"show --sidecars {urls}"
    if token_file is None:
        return [show]
    change = f"--sidecars {urls} --token-file {shlex.quote(str(token_file))}"
    return [f"set 0.5 --reason 'to try it' --for PT1M {change}", show, f"clear {change}"]


def _steps(steps: Sequence[Step]) -> Table:
    grid = Table.grid(padding=(0, 1))
    for step in steps:
        grid.add_row(_mark(step), step.title, _seconds(step))
    return grid


def _mark(step: Step) -> RenderableType:
    if step.failed:
        return Text("✗", "red")
    return Spinner("dots") if step.seconds is None else Text("✓", "green")


def _seconds(step: Step) -> Text:
    return Text("" if step.seconds is None else f"{step.seconds:.2f} s", "dim")


def _volumes(scenario: Scenario) -> Table:
    grid = Table.grid(padding=(0, 1))
    for volume in scenario.volumes:
        violates = volume.available_bytes <= scenario.limit_bytes
        grid.add_row(
            "  " + volume.name,
            _bar(volume, scenario.limit_bytes),
            Text(f"{volume.available_bytes / 1e6:.1f} MB left", "red" if violates else ""),
        )
    for broker_id, received in sorted(scenario.received.items()):
        style = "green" if received.factor == 1.0 else "bold red"
        grid.add_row(f"  sidecar {broker_id}", Text(f"factor {received.factor}", style), "")
    return grid


def _loads(scenario: Scenario) -> Table:
    grid = Table.grid(padding=(0, 1))
    for load in scenario.loads:
        reported = load.traffic.longest_throttle_s
        grid.add_row(
            f"  to {load.name}" if load.quota is None else f"  {load.name}",
            Text(_sparks(load), "cyan"),
            f"{load.rate() / 1e6:.1f} MB/s now"
            + (f", longest wait {reported:.1f} s" if reported else ""),
        )
    return grid


def _sparks(load: Load) -> str:
    """Draw the throughput of the last seconds, one cell each; the target has the highest cell."""
    rates = [rate for _, rate in load.traffic.samples.rates(_SPARK_S, _SPARK_S)][-_BAR_CELLS:]
    top = len(_SPARKS) - 1
    return "".join(_SPARKS[min(top, round(top * rate / load.target))] for rate in rates)


def _bar(volume: VolumeNow, limit_bytes: int) -> Text:
    """Draw the used space from the left, and the position of the limit."""
    used_cells = round(_BAR_CELLS * (1 - volume.available_bytes / volume.total_bytes))
    limit_cell = round(_BAR_CELLS * (1 - limit_bytes / volume.total_bytes))
    cells = "".join("█" if cell < used_cells else "░" for cell in range(_BAR_CELLS))
    return Text(
        f"{cells[:limit_cell]}│{cells[limit_cell:]}", "red" if used_cells >= limit_cell else "cyan"
    )
