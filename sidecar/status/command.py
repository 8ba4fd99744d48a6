"""Commands for an operator to type, as the page shows them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """Commands to type, with their effect."""

    what: str
    lines: tuple[str, ...]
    note: str = ""
