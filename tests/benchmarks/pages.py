"""A benchmark's program as a test runs it, and what its page and pictures say."""

from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest


def run(monkeypatch: pytest.MonkeyPatch, program: ModuleType, folder: Path, *arguments: str) -> int:
    """Returns the program's exit code; results and page.md are in the folder."""
    words = ["--results", str(folder), "--out", str(folder / "page.md"), *arguments]
    monkeypatch.setattr("sys.argv", ["benchmark", *words])
    code: int = program.main()
    return code


def row(page: str, start: str) -> list[str]:
    """Returns the cells of a table's one row that starts so, after the first."""
    (found,) = [line for line in page.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in found.strip("|").split("|")][1:]


def texts(picture: Path) -> list[str | None]:
    """Returns the text elements of an SVG."""
    return [each.text for each in ET.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
