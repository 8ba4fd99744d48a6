"""Draws the demo's scenario as a film: one HTML page that plays the samples of a run.

The page needs no other file and no network. Each value in it is a sample: where there is none for a
moment, such as while sidecars restart, the line has a gap.

Example: the available bytes are sampled every 20 ms, and the page has the last sample of each half
second. If a busy machine took none for two seconds, three of these are missing.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jinja2 import Environment

from kafka_lab.scenario import Scenario
from kafka_lab.series import Series
from sidecar.cli.chart import LEFT, RIGHT, WIDTH, Line, Mark, Panel, svg

_CELL_S: Final = 0.5
_FRESH_S: Final = 0.3
"""How old a sample may be; volumes and producers are sampled at least ten times a second."""
_HEARD_S: Final = 1.5
"""The same for the factor, which each sidecar sends at least once a second."""
_RATE_S: Final = 1.0

Cells = list[float | None]
"""A value for each time; None where there is no sample."""


def film(scenario: Scenario) -> str:
    """Return the page.

    Raises:
        ValueError: nothing was measured.
    """
    samples = [load.traffic.samples for load in scenario.loads]
    begin = min((at for each in samples for at, _ in each), default=0.0)
    end = max((at for each in samples for at, _ in each), default=0.0)
    times = [begin + _CELL_S * cell for cell in range(int((end - begin) / _CELL_S) + 1)]
    available = {"available": [_mb(scenario.free.latest(at, _FRESH_S)) for at in times]}
    heard = scenario.factors.get(max(scenario.factors, default=0), Series())
    factor = {"factor": [heard.latest(at, _HEARD_S) for at in times]}
    rates = {
        _short(load.name): [_mb(_rate(each, at)) for at in times]
        for load, each in zip(scenario.loads, samples, strict=True)
    }
    captions = [(round(at - begin, 2), text) for at, text in scenario.captions if at >= begin]
    moments = list(_numbers([at for at, _ in captions], (end - begin) / 40))
    limit = scenario.limit_bytes / 1e6
    plain = [Mark("", at) for at, _ in captions]
    panels = [
        Panel(
            "available on the fullest volume, MB",
            list(_lines(available)),
            moments,
            [Mark("limit", limit)],
            220,
        ),
        Panel("throttle factor", list(_lines(factor)), plain, height=130),
        Panel("written by each producer, MB/s", list(_lines(rates)), plain, height=220),
    ]
    xs = [x for panel in panels for line in panel.lines for x, _ in line.points]
    picture = svg("A demo of throttle-sidecar", "seconds", panels)
    data = {
        "cell": _CELL_S,
        "from": min(xs),
        "to": max(xs),
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "limit": round(limit, 1),
        "values": [
            *(["available", "MB", cells] for cells in available.values()),
            *(["factor", "", cells] for cells in factor.values()),
            *([name, "MB/s", cells] for name, cells in rates.items()),
        ],
        "captions": captions,
    }
    source = (Path(__file__).parent / "film.html").read_text(encoding="utf-8")
    return (
        Environment(autoescape=True)
        .from_string(source)
        .render(
            svg=picture,
            captions=captions,
            # In a script, only this character could end it.
            data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        )
    )


def _numbers(times: list[float], apart_s: float) -> Iterator[Mark]:
    """Yield marks with the captions' numbers; those that would overlap share one, such as 2-4."""
    first = 0
    for number in range(len(times)):
        if number + 1 == len(times) or times[number + 1] - times[first] >= apart_s:
            name = f"{first + 1}-{number + 1}" if number > first else f"{number + 1}"
            yield Mark(name, times[first])
            first = number + 1


def _lines(values: dict[str, Cells]) -> Iterator[Line]:
    """Yield the lines of cells without a gap; the first of each has the name."""
    for style, (name, cells) in enumerate(values.items()):
        points: list[tuple[float, float]] = []
        title = name
        for number, value in enumerate([*cells, None]):
            if value is not None:
                points.append((number * _CELL_S, value))
            elif points:
                yield Line(title, points, style)
                title, points = "", []


def _rate(samples: Series, at: float) -> float | None:
    is_sampled = all(samples.latest(each, _FRESH_S) is not None for each in (at - _RATE_S, at))
    return samples.rate(at - _RATE_S, at) if is_sampled else None


def _mb(value: float | None) -> float | None:
    return None if value is None else round(value / 1e6, 2)


def _short(name: str) -> str:
    """The tenant's name, if there is one in parentheses."""
    found = re.search(r"\((.*)\)", name)
    return found[1] if found else name
