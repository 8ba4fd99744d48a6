"""The settings of a sample."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sidecar.errors import SidecarError


class SampleError(SidecarError):
    """The requested sample can't be generated."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The settings of a sample.

    Attributes:
        size_bytes: the uncompressed size of all request logs, met within about 2 %.
        seed: the seed of everything random.
        brokers: the number of brokers; their ids are 0, 1, ... and 0 is also the controller.
        hours: the time that the logs cover.
        start: the start of the logs, UTC. The volume history ends at the same time as the logs.
        history_days: the time that the volume history covers.
        clients: the client-ids of additional small tenants, 60 for each user; 0 for none.

    Raises:
        SampleError: another number is not above 0, or the start has no time zone.
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
            raise SampleError("a sample's size, brokers, hours and days must be above 0")
        if self.clients < 0:
            raise SampleError("a sample's number of additional client-ids must be 0 or more")
        if self.start.tzinfo is None:
            raise SampleError("a sample's start needs a time zone, as in 2026-01-05T08:00:00Z")

    @property
    def seconds(self) -> int:
        """Return the seconds that the logs cover, at least 1."""
        return max(1, round(self.hours * 3600))

    @property
    def start_s(self) -> int:
        """Return the start of the logs, in seconds since 1970."""
        return int(self.start.timestamp())
