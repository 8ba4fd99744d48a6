"""What a sidecar answers, be it the daemon as a process or one in the test's own loop."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from prometheus_client import Metric

Document = dict[str, Any]
VolumeKey = tuple[int, str]
"""Broker id and log dir."""

_Labels = frozenset[tuple[str, str]]


class Documents(ABC):
    """The documents of a sidecar's API."""

    @abstractmethod
    async def get(self, path: str) -> Document:
        """The JSON object at a path."""

    async def factor(self) -> Document:
        """The factor in force."""
        return await self.get("/v1/throttle-factor")

    async def volumes(self) -> dict[VolumeKey, Document]:
        """The volumes that are shown."""
        document = await self.get("/v1/volumes")
        return {(each["broker_id"], each["log_dir"]): each for each in document["volumes"]}

    async def brokers(self) -> dict[int, Document]:
        """The brokers that are shown, by id."""
        document = await self.get("/v1/brokers")
        return {each["broker_id"]: each for each in document["brokers"]}


@dataclass(frozen=True, slots=True)
class Metrics:
    """One scrape."""

    samples: Mapping[tuple[str, _Labels], float]

    @classmethod
    def of(cls, families: Iterable[Metric]) -> Self:
        """The metrics of a registry, or of a scrape's text."""
        return cls(
            {
                (sample.name, frozenset(sample.labels.items())): sample.value
                for family in families
                for sample in family.samples
            }
        )

    def value(self, name: str, **labels: object) -> float | None:
        """One series; None when there is none."""
        wanted = frozenset((label, str(value)) for label, value in labels.items())
        return self.samples.get((f"kafka_throttle_{name}", wanted))

    def volumes(self, name: str) -> dict[VolumeKey, float]:
        """One of the volumes' metrics."""
        return {
            (int(dict(labels)["broker"]), dict(labels)["log_dir"]): value
            for (sample, labels), value in self.samples.items()
            if sample == f"kafka_throttle_volume_{name}"
        }

    def failure_kinds(self) -> set[str]:
        """The kinds of failure that were counted."""
        return {
            dict(labels)["kind"]
            for (name, labels), count in self.samples.items()
            if name == "kafka_throttle_poll_failures_total" and count
        }
