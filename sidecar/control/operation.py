"""What an operator did to the board: an override, or forgetting a reading."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator's change.

    Attributes:
        what: the change, such as "forgot broker 3".
        by: the user that a proxy named, or "the bearer token".
        address: the address from which the request came; "" if it is unknown.
        reason: the operator's reason; "" without one.
    """

    what: str
    by: str
    address: str
    reason: str

    def __str__(self) -> str:
        place = f" from {self.address}" if self.address else ""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.by}{place} {self.what}{reason}"
