"""The real cluster of ``demo-pipeline``: sends known traffic, and logs it.

The first round has known quotas, and the second one the same traffic under doubled quotas. It
begins when every window is empty and every bucket is full again. The third round is the traffic of
tenants without quotas. Each round leaves a folder with the nodes' request logs,
``broker-0.log`` and so on, and ``quotas.json`` in the form of ``throttle-sidecar quotas show
--json``.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kafka_lab.broker_properties import CONTROLLER_ID
from kafka_lab.cluster import Cluster
from kafka_lab.listeners import Listener
from kafka_lab.rounds import Ledger, place, refuse_late, send, send_round
from kafka_lab.tenant_traffic import QUOTAS, USERS, Plan
from sidecar.errors import ClusterError
from sidecar.kafka.broker_configs import describe_broker_configs
from sidecar.kafka.broker_loggers import set_levels
from sidecar.kafka.client_quotas import alter_client_quotas, describe_client_quotas
from sidecar.kafka.quota_messages import Alteration
from sidecar.quotas.quota_file import quota_documents
from sidecar.requestlog.rejected import LOGGER
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from sidecar.volumes import Failure

LISTENER: Final = "TENANTS"

_SETTLE_S: Final = 2.0
"""The time until every node's quota managers apply new quotas, and every line is written."""


@dataclass(frozen=True, slots=True)
class Round:
    """The results of one round."""

    ledger: Ledger
    folder: Path
    began: datetime


def cluster_of(environ: Mapping[str, str], version: str) -> Cluster:
    """Return a cluster of three brokers with large volumes, not started."""
    return Cluster(
        environ=environ,
        version=version,
        volumes=1,
        volume_bytes=512 << 20,
        listeners=[Listener(LISTENER, "SASL_PLAINTEXT", "PLAIN", USERS)],
    )


async def record(
    cluster: Cluster, plan: Plan, folder: Path, report: Callable[[str], None]
) -> list[Round]:
    """Send all rounds and store the logs.

    Returns:
        The rounds under the first quotas, under doubled quotas, and of tenants without quotas.

    Raises:
        ClusterError: the cluster or a client failed.
    """
    await place(cluster.bootstrap, [*plan.senders, *plan.advised])
    await _log_requests(cluster, "DEBUG")
    rounds = []
    for number, name in enumerate(("first", "second")):
        if number:
            report("waiting until the windows are empty and the buckets are full")
            await set_quotas(cluster, _multiplied(2.0))
            await asyncio.sleep(plan.drain_s)
        else:
            await set_quotas(cluster, _multiplied(1.0))
            await asyncio.sleep(_SETTLE_S)
        quotas = " under doubled quotas" if number else ""
        report(f"sending {plan.round_s:g} s of the tenants' traffic{quotas}")
        sending = send_round(cluster.bootstrap_of(LISTENER), plan, number)
        rounds.append(await _recorded(cluster, sending, folder / name))
    report("sending the traffic of tenants without quotas")
    rounds.append(await _recorded(cluster, _send_advised(cluster, plan), folder / "advised"))
    await _log_requests(cluster, "WARN")
    return rounds


async def _recorded(cluster: Cluster, sending: Awaitable[Ledger], folder: Path) -> Round:
    """Send a round, and store what the nodes log meanwhile, and the quotas."""
    marks = {file: file.stat().st_size for file in _logs(cluster).values()}
    began = datetime.now(UTC)
    ledger = await sending
    await asyncio.sleep(_SETTLE_S)
    await asyncio.to_thread(_keep, _logs(cluster), marks, folder)
    await _snapshot(cluster, folder / "quotas.json")
    return Round(ledger, folder, began)


async def _send_advised(cluster: Cluster, plan: Plan) -> Ledger:
    return Ledger(refuse_late(await send(cluster.bootstrap_of(LISTENER), plan.advised)))


def _logs(cluster: Cluster) -> dict[int, Path]:
    if cluster.folder is None:
        raise ClusterError("the cluster is not up")
    logs = {broker.id: Path(f"{broker.log}.requests") for broker in cluster.brokers.values()}
    return logs | {CONTROLLER_ID: cluster.folder / "controller.log.requests"}


def _keep(logs: Mapping[int, Path], marks: Mapping[Path, int], folder: Path) -> None:
    """Keep the lines since the marks; these are whole lines."""
    (folder / "logs").mkdir(parents=True)
    for node_id, file in logs.items():
        since = file.read_bytes()[marks[file] :]
        (folder / "logs" / f"broker-{node_id}.log").write_bytes(since)


async def set_quotas(cluster: Cluster, quotas: Sequence[Alteration]) -> None:
    """Set quotas; others stay.

    Raises:
        ClusterError: they can't be set.
    """
    failure = await alter_client_quotas(_admin(cluster.bootstrap), quotas)
    if failure is not None:
        raise ClusterError(f"the quotas can't be set: {failure.message}")


def _multiplied(factor: float) -> list[Alteration]:
    return [
        (dict(entity), {key: limit * factor for key, limit in limits.items()})
        for entity, limits in QUOTAS.items()
    ]


async def _snapshot(cluster: Cluster, file: Path) -> None:
    quotas = await describe_client_quotas(_admin(cluster.bootstrap))
    if isinstance(quotas, Failure):
        raise ClusterError(f"the quotas can't be read: {quotas.message}")
    document = {"quotas": quota_documents(quotas)}
    await asyncio.to_thread(file.write_text, json.dumps(document, indent=2))


async def _log_requests(cluster: Cluster, level: str) -> None:
    brokers = _admin(cluster.bootstrap)
    _must(await set_levels(brokers, dict.fromkeys(cluster.brokers, level), LOGGER))
    configs = await describe_broker_configs(brokers, [0], ["controller.quorum.voters"])
    voters = None if isinstance(configs, Failure) or isinstance(configs[0], Failure) else configs[0]
    for voter in ((voters or {}).get("controller.quorum.voters") or "").split(","):
        node_id, _, address = voter.partition("@")
        levels = {int(node_id): level}
        _must(await set_levels(_admin(address), levels, LOGGER, nodes="controllers"))


def _must(levels: Mapping[int, object] | Failure) -> None:
    failures = [levels] if isinstance(levels, Failure) else levels.values()
    for failure in failures:
        if isinstance(failure, Failure):
            raise ClusterError(f"the request log can't be turned on or off: {failure.message}")


def _admin(bootstrap: str) -> KafkaAdmin:
    return KafkaAdmin(bootstrap_servers=addresses(bootstrap))
