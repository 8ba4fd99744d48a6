"""Running a benchmark, series made by hand, and what a page and its pictures say."""

from pathlib import Path
from xml.etree import ElementTree as ET

from benchmarks.harness import program
from benchmarks.harness.program import Benchmark
from benchmarks.harness.tables import Figures
from kafka_lab.series import Series


def run(benchmark: Benchmark, folder: Path, *words: str) -> int:
    """Returns the program's exit code; results and page.md are in the folder."""
    out = ["--results", str(folder), "--out", str(folder / "page.md")]
    return program.main(benchmark, [*words, *out])


def page(folder: Path) -> str:
    """Returns the page that ``run`` has written."""
    return (folder / "page.md").read_text()


def row(text: str, start: str) -> list[str]:
    """Returns the cells of a table's one row that starts so, after the first."""
    (found,) = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in found.strip("|").split("|")][1:]


def texts(picture: Path) -> list[str | None]:
    """Returns the text elements of an SVG."""
    return [each.text for each in ET.parse(picture).iter("{http://www.w3.org/2000/svg}text")]


def figure(found: Figures, start: str) -> float | None:
    """Returns the value of the one figure whose name starts so."""
    (value,) = [value.value for name, value in found.items() if name.startswith(start)]
    return value


def counted(*rates: tuple[float, float], begin: float = 0.0, step: float = 0.02) -> Series:
    """Returns a count at rates that last until a time each, sampled fifty times a second."""
    samples, total, at = [], 0.0, begin
    for until, rate in rates:
        while at < until - 1e-9:
            samples.append((at, total))
            at, total = at + step, total + rate * step
    return Series([*samples, (at, total)])
