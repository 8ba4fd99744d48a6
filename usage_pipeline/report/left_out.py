"""What a search of the page can't find: how much of each table isn't in it, and where it is.

Example: of 60,000 client-ids that produce, those of 600 are in the page by name. Beside the field
stands "Usage: 600 of 60,000 tenants, those that use or wait most; all are in gold_usage_1s".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from usage_pipeline.report.page import said

_INTRO: Final = (
    "The search finds what is in this page, which doesn't have all rows. A tenant counts once for"
    " each quota type:"
)
_ELSEWHERE: Final = (
    "`throttle-sidecar pipeline files TABLE --out DIR` prints where a table's files are, for any"
    " engine; DIR is the folder of the tables."
)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of the page that doesn't have all that its table has.

    Attributes:
        part: of the page.
        shown: how many are in it.
        left: how many are not; 0: it has all.
        unit: of what, in the plural.
        which: those that are in it.
        table: where all are.
    """

    part: str
    shown: int
    left: int
    unit: str
    which: str
    table: str

    @property
    def extent(self) -> str:
        """How many are shown, and where all are."""
        every = f"{self.shown + self.left:,}"
        return f"{self.shown:,} of {every} {self.unit}, {self.which}; all are in {self.table}"

    @property
    def sentence(self) -> str:
        """Of what this is said, too."""
        return f"{self.part}: {self.extent}."


def left_out_note(parts: Sequence[LeftOut]) -> str:
    """HTML; empty where nothing is left out."""
    items = "".join(f"<li>{escape(part.sentence)}</li>" for part in parts if part.left)
    return f"{said(_INTRO)}<ul>{items}</ul>{said(_ELSEWHERE)}" if items else ""
