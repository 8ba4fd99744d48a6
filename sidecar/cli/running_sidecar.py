"""The decision of the running sidecar, for ``check``, and how a single poll differs from it.

A single poll does not have the last reading of a fenced broker, an override, or the readers.

Example: broker 2 was full, and is fenced now. The poll finds every volume within the limit, and the
sidecar has factor 0.0: "Broker 2 /d violates the limit by the sidecar, not this poll".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sidecar.cli.sidecar_client import Answer
from sidecar.throttle.memory import VolumeState
from sidecar.volumes import LogDir

ALONE: Final = "Not known without the sidecar: readings of fenced brokers, overrides, readers."

_READ: Final = {"factor", "source", "reason", "violations"}


@dataclass(frozen=True, slots=True)
class RunningSidecar:
    """What a sidecar answered.

    Attributes:
        address: the sidecar's address.
        problem: why there is no answer; "" with an answer.
        document: the answer of /v1/throttle-factor; empty without one.
    """

    address: str
    problem: str
    document: Mapping[str, Any]

    @classmethod
    def of(cls, answer: Answer, cluster_id: str | None) -> "RunningSidecar":
        """Take the only document of an answer.

        Args:
            answer: the sidecar's answer.
            cluster_id: the id of the polled cluster; None if it is not known.
        """
        address, problem = str(answer.address), answer.problem
        if problem is None and not answer.documents[0].keys() >= _READ:
            problem = "the server at this address is not a sidecar"
        elif (
            problem is None
            and (other := answer.documents[0].get("cluster_id"))
            and (cluster_id not in {None, other})
        ):
            leads = f"these settings lead to the cluster {cluster_id}"
            problem = f"it watches the cluster {other}, and {leads}"
        return cls(address, problem or "", {} if problem else answer.documents[0])

    @property
    def violating(self) -> frozenset[LogDir]:
        """The volumes that violate the limit, by the sidecar."""
        violations = self.document.get("violations", ())
        return frozenset((each["broker_id"], each["log_dir"]) for each in violations)

    def sentences(self, polled: Sequence[VolumeState]) -> Iterator[str]:
        """Describe the sidecar's decision, and how the poll differs.

        Args:
            polled: the volumes that violate the limit by the poll.
        """
        if self.problem:
            yield f"No decision of the sidecar at {self.address}: {self.problem}. {ALONE}"
            return
        found = self.document
        factor = f"factor {found['factor']} ({found['source']})"
        yield f"Sidecar {self.address}: {factor}: {found['reason']}"
        # A sidecar of an earlier version does not count its readers.
        if found.get("lowered_quotas"):
            yield f"{found['lowered_quotas']} produce quotas are lowered in Kafka by this sidecar."
        elif found.get("enforcement", "callback") != "callback" and not found.get("readers"):
            yield (
                f"SIDECAR_ENFORCEMENT={found['enforcement']}: no quota is lowered now, so it "
                "throttles nobody."
            )
        elif found.get("readers") == 0:
            yield "No broker has read that factor in the last 10 minutes, so it throttles nobody."
        own = frozenset(each.volume.place for each in polled)
        for broker_id, log_dir in sorted(self.violating - own):
            yield f"Broker {broker_id} {log_dir} violates the limit by the sidecar, not this poll."
        for broker_id, log_dir in sorted(own - self.violating):
            yield f"Broker {broker_id} {log_dir} violates the limit by this poll, not the sidecar."
