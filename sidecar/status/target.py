"""The target of the commands on the page: an address of the cluster, and the platform.

``SIDECAR_PLATFORM=auto`` finds Strimzi by the form of addresses alone. The page says what it
assumed.

Example: brokers with TLS and SCRAM, in pods of Strimzi: ``--bootstrap-server ... --command-config
admin.properties``, and the namespace of the pods.
"""

import shlex
from dataclasses import dataclass
from typing import Final

from sidecar.status import strimzi
from sidecar.status.command import Command
from sidecar.status.inputs import ToolSettings
from sidecar.throttle.memory import Memory, VolumeState

_WHEN: Final = (
    "Kafka deletes whole segments. It looks for them every log.retention.check.interval.ms (by "
    "default 5 minutes), and deletes their files file.delete.delay.ms later (1 minute). The active "
    "segment stays until it is full (segment.bytes, 1 GiB) or old (segment.ms, 7 days)."
)


@dataclass(frozen=True, slots=True)
class Target:
    """What the commands are typed at.

    Attributes:
        at: the options that reach the brokers.
        namespace: the namespace of Strimzi's resources; None without Strimzi.
        about: what all commands assume and need, in sentences.
        assumed: the one of these that names the platform; "" if the settings do.
    """

    at: str
    namespace: str | None = None
    about: tuple[str, ...] = ()
    assumed: str = ""

    @classmethod
    def of(cls, memory: Memory, tools: ToolSettings) -> "Target":
        """Find it from the cluster's addresses, unless the settings say which platform it is."""
        at = f"--bootstrap-server {shlex.quote(_address(memory))}"
        about = [_WHEN]
        if tools.security:
            at += " --command-config admin.properties"
            needs = " and ".join(tools.security)
            about.append(
                f"admin.properties needs {needs}, and the login of somebody who may change topics."
            )
        brokers = {**memory.fenced, **memory.active}
        found = strimzi.evidence(brokers, tools.bootstrap)
        is_strimzi = tools.platform == "strimzi" or (tools.platform == "auto" and bool(found))
        assumed = ""
        if tools.platform == "auto":
            assumed = (
                f"These commands are for Strimzi, since the cluster has the address {found}."
                " SIDECAR_PLATFORM=kafka shows those for Kafka alone."
                if found
                else "These commands are for Kafka alone: no address has Strimzi's form. "
                "SIDECAR_PLATFORM=strimzi shows those for Strimzi."
            )
            about.append(assumed)
        namespace = strimzi.namespace_of(brokers, tools.bootstrap) if is_strimzi else None
        return cls(at, namespace, tuple(about), assumed)

    def growth(self, state: VolumeState, memory: Memory) -> Command | None:
        """Return the commands that grow a volume; None without Strimzi."""
        if self.namespace is None:
            return None
        broker_id = state.volume.broker_id
        pod = strimzi.pod_of(broker_id, {**memory.fenced, **memory.active}.get(broker_id, ""))
        return strimzi.growth(state.volume, pod or strimzi.Pod(namespace=self.namespace))


def _address(memory: Memory) -> str:
    active = memory.active
    answering = [
        address
        for broker_id, address in active.items()
        if (broker := memory.brokers.get(broker_id)) is not None and broker.failure is None
    ]
    return next(iter(answering or active.values()), "BROKER:9092")
