"""Remedies on Strimzi, whose operators own the sizes of volumes and the settings of topics.

The Topic Operator reverts a setting that was changed in Kafka, so the commands patch resources:
a KafkaTopic for retention, and a KafkaNodePool for the size of a volume. Names come from Strimzi's
form of a broker's address, ``CLUSTER-POOL-ID.CLUSTER-kafka-brokers.NAMESPACE.svc``, and from its
form of a log dir, ``/var/lib/kafka/data-VOLUME/kafka-logID``.

Example: broker 2 at ``prod-hot-2.prod-kafka-brokers.kafka.svc`` is of the pool ``hot``. The volume
of its log dir ``/var/lib/kafka/data-0/kafka-log2`` has the claim ``data-0-prod-hot-2``.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.status.command import Command
from sidecar.volumes import Volume

_BROKER: Final = re.compile(
    r"([a-z0-9][a-z0-9-]*)-([a-z0-9][a-z0-9-]*)-([0-9]+)\.\1-kafka-brokers\.([a-z0-9-]+)\.svc\b.*"
)
_BOOTSTRAP: Final = re.compile(
    r"[a-z0-9][a-z0-9-]*-kafka-bootstrap(?:\.([a-z0-9-]+)(?:\.svc\b.*)?)?"
)
_LOG_DIR: Final = re.compile(r"/var/lib/kafka/data(?:-([0-9]+))?/kafka-log[0-9]+")
_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Pod:
    """A broker's pod.

    Attributes:
        name: the pod's name, or a word to replace.
        pool: the name of its KafkaNodePool, or a word to replace.
        namespace: its namespace, or a word to replace.
    """

    name: str = "POD"
    pool: str = "POOL"
    namespace: str = "NAMESPACE"


def evidence(brokers: Mapping[int, str], bootstrap: Iterable[str]) -> str:
    """Return an address that only Strimzi gives; "" if there is none.

    Args:
        brokers: broker id -> host:port.
        bootstrap: the hosts of the bootstrap servers.
    """
    for broker_id, address in sorted(brokers.items()):
        if pod_of(broker_id, address) is not None:
            return address
    return next((host for host in bootstrap if _BOOTSTRAP.fullmatch(host)), "")


def pod_of(broker_id: int, address: str) -> Pod | None:
    """Return the pod of a broker; None if its address has not Strimzi's form."""
    found = _BROKER.fullmatch(address)
    if found is None or int(found[3]) != broker_id:
        return None
    return Pod(f"{found[1]}-{found[2]}-{found[3]}", found[2], found[4])


def namespace_of(brokers: Mapping[int, str], bootstrap: Iterable[str]) -> str:
    """Return the cluster's namespace, or a word to replace."""
    pods = (pod_of(*each) for each in sorted(brokers.items()))
    found = [pod.namespace for pod in pods if pod is not None]
    found += [match[1] for host in bootstrap if (match := _BOOTSTRAP.fullmatch(host)) and match[1]]
    return next(iter(found), Pod().namespace)


def growth(volume: Volume, pod: Pod) -> Command:
    """Return the commands that grow a volume by half, on each broker of the pool."""
    log_dir = _LOG_DIR.fullmatch(volume.log_dir)
    number = "0" if log_dir is None else log_dir[1]
    claim = f"data-{pod.name}" if number is None else f"data-{number}-{pod.name}"
    gib = -(-volume.total_bytes * 3 // 2 // _GIB)
    in_namespace = f"-n {pod.namespace}"
    class_of_claim = f"kubectl get pvc {in_namespace} {claim} -o {_field('.spec.storageClassName')}"
    return Command(
        f"Grow the volume to {gib} GiB",
        (
            f'kubectl get storageclass "$({class_of_claim})" -o {_field(".allowVolumeExpansion")}',
            f"kubectl patch kafkanodepool {in_namespace} {pod.pool} --type json "
            f"-p {shlex.quote(json.dumps(size_patch(number, gib)))}",
        ),
        "Half as much again, on each broker of the pool, if the first line prints true. It can't "
        "be undone. The patch fails if another volume has that place in the list. The space is "
        "there when the storage has grown. The Cluster Operator then restarts these brokers, one "
        "by one. Without node pools, the size is in the Kafka resource (spec.kafka.storage).",
    )


def size_patch(number: str | None, gib: int) -> list[dict[str, object]]:
    """Return the JSON patch of a KafkaNodePool that sets the size of a volume.

    Args:
        number: the volume's id; None for the only volume of storage that is not JBOD.
        gib: the new size, GiB.
    """
    if number is None:
        at = "/spec/storage"
        test: dict[str, object] = {"path": f"{at}/type", "value": "persistent-claim"}
    else:
        at = f"/spec/storage/volumes/{number}"
        test = {"path": f"{at}/id", "value": int(number)}
    return [{"op": "test", **test}, {"op": "replace", "path": f"{at}/size", "value": f"{gib}Gi"}]


def retention(topic: str, retained_bytes: int, what: str, note: str, namespace: str) -> Command:
    """Return the commands that patch the KafkaTopic of a topic.

    Args:
        topic: the topic's name in Kafka; the resource may have another one.
        retained_bytes: the new retention.bytes.
        what: the heading.
        note: what the commands do.
        namespace: where the KafkaTopic is.
    """
    in_namespace = f"-n {namespace}"
    named = f".items[?(@.status.topicName=={json.dumps(topic)})].metadata.name"
    patch = json.dumps(retention_patch(retained_bytes))
    return Command(
        what,
        (
            f"kafkatopic=$(kubectl get kafkatopics {in_namespace} -o {_field(named)})",
            f'kubectl get kafkatopic {in_namespace} "$kafkatopic" -o {_field(".spec.config")}',
            f'kubectl patch kafkatopic {in_namespace} "$kafkatopic" --type merge '
            f"-p {shlex.quote(patch)}",
        ),
        note,
    )


def retention_patch(retained_bytes: int) -> dict[str, dict[str, object]]:
    """Return the merge patch of a KafkaTopic that sets its retention."""
    return {"spec": {"config": {"retention.bytes": retained_bytes}}}


def _field(path: str) -> str:
    """Return kubectl's output format that prints a field and ends the line."""
    return shlex.quote(f'jsonpath={{{path}}}{{"\\n"}}')
