"""A page's tables, with what is said before each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page.

    Attributes:
        section: the heading it stands under.
        before: the paragraph or list right before it, on one line.
        header: its columns.
        rows: the cells of each row, by column.
    """

    section: str
    before: str
    header: tuple[str, ...]
    rows: tuple[dict[str, str], ...]


def page(name: str) -> str:
    """The text of docs/NAME.md."""
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def plain(path: str) -> str:
    """A path of the API as pages write it."""
    return path.replace("{user:name}", "{user}").replace("{broker_id}", "{id}")


def tables(name: str) -> Iterator[Table]:
    """The tables of docs/NAME.md, in order."""
    section = before = ""
    for block in re.split(r"\n\n+", page(name)):
        if block.startswith("#"):
            section = block.partition("\n")[0].lstrip("# ")
        elif block.startswith("|"):
            header, _, *lines = [_cells(line) for line in block.splitlines()]
            rows = tuple(dict(zip(header, cells, strict=True)) for cells in lines)
            yield Table(section, before, tuple(header), rows)
        else:
            before = " ".join(block.split())


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    return [cell.strip().replace("\\|", "|") for cell in cells]
