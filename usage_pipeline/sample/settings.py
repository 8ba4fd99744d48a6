"""What a sample is to be like."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sidecar.errors import SidecarError


class SampleError(SidecarError):
    """The requested sample can't be made."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample.

    Attributes:
        size_bytes: of the request logs together, unpacked; met within about 2 %.
        seed: of all that is random.
        brokers: how many; their ids are 0, 1, ... and 0 is the controller too.
        hours: that the logs cover.
        start: of the logs, UTC. The volume history ends where the logs do.
        history_days: that the volume history covers.
        clients: client-ids of many small tenants besides, 60 of each user; 0 for none.

    Raises:
        SampleError: one of the others is not above 0, or the start has no time zone.
    """

    size_bytes: int
    seed: int = 1
    brokers: int = 3
    hours: float = 2.0
    start: datetime = datetime(2026, 1, 5, 8, tzinfo=UTC)
    history_days: int = 7
    clients: int = 0

    def __post_init__(self) -> None:
        if min(self.size_bytes, self.brokers, self.hours, self.history_days) <= 0:
            raise SampleError("a sample's size, brokers, hours and days are above 0")
        if self.clients < 0:
            raise SampleError("a sample has 0 client-ids besides, or more")
        if self.start.tzinfo is None:
            raise SampleError("a sample's start has a time zone, as in 2026-01-05T08:00:00Z")

    @property
    def seconds(self) -> int:
        """That the logs cover, 1 at least."""
        return max(1, round(self.hours * 3600))

    @property
    def start_s(self) -> int:
        """Of the logs, seconds since 1970."""
        return int(self.start.timestamp())
