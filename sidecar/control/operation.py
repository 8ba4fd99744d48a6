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

    @property
    def author(self) -> str:
        """The user and the address: "user alice from 10.0.0.7"."""
        return f"{self.by} from {self.address}" if self.address else self.by

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.author} {self.what}{reason}"
