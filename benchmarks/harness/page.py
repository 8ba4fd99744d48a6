"""A page of results: tables between two comments, among words that no program touches."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

END: Final = "<!-- end -->"


def begin(target: str) -> str:
    """The comment before the tables of a make target."""
    return f'<!-- made by "make {target}" -->\n'


def fill(page: Path, target: str, tables: str) -> None:
    """Put tables into a page in place of its earlier ones; make the page if it is not there.

    Raises:
        ValueError: the page has no place for them.
    """
    start = begin(target)
    text = page.read_text(encoding="utf-8") if page.is_file() else f"# {target}\n\n{start}{END}\n"
    head, found, rest = text.partition(start)
    _, end, tail = rest.partition(END)
    if not found or not end:
        raise ValueError(f"{page} has no place for the tables: {start}{END}")
    page.write_text("".join([head, start, "\n", tables, END, tail]), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Pictures:
    """Writes pictures beside a page."""

    page: Path

    def add(self, key: str, title: str, svg: str) -> str:
        """Write ``PAGE-KEY.svg``, or ``PAGE.svg`` without a key; the Markdown that shows it."""
        stem = f"{self.page.stem}-{key}" if key else self.page.stem
        self.page.with_name(f"{stem}.svg").write_text(svg, encoding="utf-8")
        return f"![{title}]({stem}.svg)\n"
