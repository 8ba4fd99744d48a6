"""States which rows are not on the page, so that its search can't find them, and where they are.

Example: the page names 600 of 60,000 client-ids that produce. Beside the search field stands
"Usage: 600 of 60,000 tenants, those that use or wait most; all are in gold_usage_1s".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from usage_pipeline.report.page import paragraph

_INTRO: Final = (
    "The search covers this page, which does not contain all rows. A tenant counts once for each"
    " quota type:"
)
_ELSEWHERE: Final = (
    "`throttle-sidecar pipeline files TABLE --out DIR` prints the paths of a table's files, for any"
    " engine; DIR is the folder of the tables."
)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of the page with some of the rows of its table.

    Attributes:
        part: the part's heading.
        shown: the number of shown items.
        left: the number of omitted items; 0 if all are shown.
        unit: the items' name, in the plural.
        which: describes the shown items.
        table: the table that has all items.
    """

    part: str
    shown: int
    left: int
    unit: str
    which: str
    table: str

    @property
    def extent(self) -> str:
        """State how many items are shown, and where all of them are."""
        every = f"{self.shown + self.left:,}"
        return f"{self.shown:,} of {every} {self.unit}, {self.which}; all are in {self.table}"

    @property
    def sentence(self) -> str:
        """State the extent with the part's heading."""
        return f"{self.part}: {self.extent}."


def left_out_note(parts: Sequence[LeftOut]) -> str:
    """Return the note as HTML; empty if nothing is left out."""
    items = "".join(f"<li>{escape(part.sentence)}</li>" for part in parts if part.left)
    return f"{paragraph(_INTRO)}<ul>{items}</ul>{paragraph(_ELSEWHERE)}" if items else ""
