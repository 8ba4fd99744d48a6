"""Tables of the page: cells of text that are sorted by their values.

Example: ``Cell("1.5 MB/s", 1_500_000)`` is before ``Cell("900 kB/s", 900_000)`` when the column is
sorted in descending order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_NUMBER: Final = ' class="n"'
_LONG_NUMBER: Final = ' class="n long"'
_LONG: Final = 15
"""Characters; a longer number may wrap in a narrow column: "20 % of a thread"."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell.

    Attributes:
        text: the text on the page.
        value: the sort key; None for an unknown value, which is always last.
        also: more text that the search finds.
    """

    text: str
    value: float | str | None = None
    also: str = ""


def named(text: str) -> Cell:
    """Return a cell that is sorted by its text."""
    return Cell(text, text)


def table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return the element, or a sentence if there are no rows."""
    if not rows:
        return f'<p class="none">{escape(caption)}: there are no rows.</p>'
    head = "".join(
        f'<th scope="col"{"" if isinstance(cell.value, str) else _NUMBER}>'
        f'<button type="button">{escape(heading)}</button></th>'
        for heading, cell in zip(headings, rows[0], strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell.value, str):
        also = f' data-also="{escape(cell.also)}"' if cell.also else ""
        return f'<td data-v="{escape(cell.value)}"{also}>{escape(cell.text)}</td>'
    value = "" if cell.value is None else f' data-n="{cell.value!r}"'
    kind = _NUMBER if len(cell.text) <= _LONG else _LONG_NUMBER
    return f"<td{kind}{value}>{escape(cell.text)}</td>"
