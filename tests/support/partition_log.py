"""A partition's records as they are, beside which a deletion of the oldest is judged.

Batches have equal records, which differ from batch to batch. Segments roll as in Kafka; a replica
removes whole ones below the first offset, never the last one.
"""

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from sidecar.throttle.relief import ReliefClass

MB = 1_000_000


@dataclass
class Log:
    """A partition: batches of equal records, each with first offset, bytes and time.

    Attributes:
        rate: what is written, bytes/s.
        replicas: its brokers; the first one leads.
        segment_bytes: the size at which a segment is rolled.
        segments: the first offset and the bytes of each.
    """

    rate: float
    replicas: list[int]
    segment_bytes: int = 20 * MB
    offsets: "array[int]" = field(default_factory=lambda: array("q", [0]))
    sizes: "array[int]" = field(default_factory=lambda: array("q"))
    times: "array[float]" = field(default_factory=lambda: array("d"))
    segments: list[list[int]] = field(default_factory=lambda: [[0, 0]])
    start: int = 0
    epoch: int = 1

    @property
    def end(self) -> int:
        return self.offsets[-1]

    @property
    def size(self) -> int:
        return self.size_from(0)

    def size_from(self, base: int) -> int:
        """The bytes of a replica that has removed the segments below an offset."""
        return sum(size for first, size in self.segments if first >= base)

    def write(self, count: int, nbytes: int, now: float) -> None:
        if self.segments[-1][1] >= self.segment_bytes:
            self.segments.append([self.end, 0])
        self.segments[-1][1] += nbytes
        self.offsets.append(self.end + count)
        self.sizes.append(nbytes)
        self.times.append(now)

    def bytes_from(self, offset: int) -> float:
        """The bytes at or above an offset."""
        at = bisect_left(self.offsets, offset)
        whole_batches = sum(self.sizes[at:])
        if at == 0 or self.offsets[at] == offset:
            return whole_batches
        first, after = self.offsets[at - 1], self.offsets[at]
        return whole_batches + self.sizes[at - 1] * (after - offset) / (after - first)

    def young_from(self, at: float) -> int:
        """The first record that is not older."""
        return self.offsets[bisect_left(self.times, at)]

    def truncate(self, batches: int) -> int:
        """Lose the newest batches, as an unclean election does; their bytes."""
        lost = 0
        for _ in range(min(batches, len(self.sizes) - 1)):
            if self.segments[-1][1] < self.sizes[-1] or self.offsets[-2] <= self.start:
                break
            lost += self.sizes[-1]
            self.segments[-1][1] -= self.sizes.pop()
            self.times.pop()
            self.offsets.pop()
        return lost

    def removed(self) -> int:
        """Remove the segments below the first offset; their bytes."""
        freed = 0
        while len(self.segments) > 1 and self.segments[1][0] <= self.start:
            freed += self.segments.pop(0)[1]
        return freed

    def forget(self, base: int) -> None:
        """Drop what no replica has any more: the segments below an offset."""
        self.segments = [each for each in self.segments if each[0] >= base]
        gone = bisect_left(self.offsets, self.segments[0][0])
        del self.offsets[:gone], self.sizes[:gone], self.times[:gone]

    def wrong(
        self, offset: int, of: ReliefClass | None, now: float, commits: Mapping[str, int]
    ) -> str:
        """Why a deletion below an offset must never be asked for, whatever fails; "" if it may."""
        if of is None:
            return "it is not declared"
        if offset <= self.start:
            # Retention was sooner, and took more: there is nothing left to delete.
            return ""
        if of.keep_bytes is not None and self.bytes_from(offset) < of.keep_bytes:
            return f"{self.bytes_from(offset):.0f} bytes would be left of {of.keep_bytes}"
        if of.keep_s is not None and offset > self.young_from(now - of.keep_s):
            return f"it has records that are younger than {of.keep_s:g} s"
        unread = [group for group, read in commits.items() if offset > read]
        return f"{unread[0]} has not read it" if unread and not of.ignores_groups else ""
