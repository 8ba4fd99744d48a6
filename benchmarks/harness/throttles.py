"""What throttles the producers of a cluster: Strimzi's plugin, the callback here, or nothing."""

import asyncio
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kafka_lab.cache import filling
from kafka_lab.callback import CALLBACK_PROPERTIES, REFUSING_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.nodes import Broker
from kafka_lab.sidecar_processes import Sidecar, start_sidecars
from kafka_lab.waiting import deadline
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError
from sidecar.formats.cache_folder import cache_folder
from sidecar.kafka.broker_loggers import REQUEST_LOGGER, set_levels
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from tests.support.exporter import export_metrics
from tests.support.java import bean

PAUSE_MAX_S: Final = 4.0
"""The callback's default pause.max."""
LEAK_RATIO: Final = 0.01
"""The callback's default leak.ratio."""
CALLBACK_BEAN: Final = "throttlesidecar:type=QuotaCallback"

_LOG_S: Final = 150.0
_POM: Final = Path(__file__).with_name("peer.xml")
_STATIC: Final = "client.quota.callback.static."
_SIDECAR_LIMIT: Final = "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES"


@dataclass(frozen=True, slots=True)
class Polls:
    """How often the volumes are polled.

    Attributes:
        peer_s: the plugin's storage.check-interval; None leaves its default of 60 s.
        ours: the sidecar's settings for it; none leave its default: a minute at most, and less when
            a volume is nearer to its limit than that.
    """

    peer_s: int | None = None
    ours: Mapping[str, str] = field(default_factory=dict)

    @property
    def period_s(self) -> float:
        """From one poll of the plugin to the next, seconds."""
        return 60.0 if self.peer_s is None else float(self.peer_s)


def _polls(peer_s: int, longest: str, shortest: str) -> Polls:
    interval = "SIDECAR_STORAGE_CHECK_INTERVAL"
    return Polls(peer_s, {interval: longest, f"{interval}_MINIMUM": shortest})


SHORTEST: Final = _polls(2, "PT1S", "PT0.1S")
"""As often as each can: with an interval of 1 s the plugin's requests time out after 0 s."""
DEFAULT: Final = Polls()
EVERY_2_S: Final = _polls(2, "PT2S", "PT2S")
"""Equally often, to compare the cost of a poll."""


class Nothing:
    """Kafka as it is, and the interface of all throttles.

    Attributes:
        key: short, for names of files.
        name: for a reader.
        refusing: the properties of brokers that also refuse producers that pauses cannot stop.
    """

    key = "none"
    name = "no callback"
    refusing: Mapping[str, str] = {}

    async def jars(self) -> tuple[Path, ...]:
        """What the brokers need on their class path."""
        return ()

    def properties(self, broker: Broker, polls: Polls, limit_bytes: int) -> dict[str, str]:  # noqa: ARG002 - the interface
        """What a broker is configured with."""
        return {}

    async def obey(self, cluster: Cluster, polls: Polls, limit_bytes: int) -> None:
        """Start what runs beside the brokers; returns when a full volume would have an effect."""


class Peer(Nothing):
    """Strimzi's plugin: every broker polls all volumes by itself."""

    key = "peer"
    name = "Strimzi's plugin 0.3.1"

    async def jars(self) -> tuple[Path, ...]:
        """From Maven's central repository, downloaded once."""
        target = (
            cache_folder(os.environ) / f"peer-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]}"
        )
        async with deadline(300.0, "the plugin's jars were not downloaded"):
            if not target.is_dir():
                async with filling(target) as folder:
                    if folder is not None:
                        await asyncio.to_thread(_resolve, folder)
        return tuple(sorted(target.glob("*.jar")))

    def properties(self, broker: Broker, polls: Polls, limit_bytes: int) -> dict[str, str]:
        """The plugin's own, with its broker as the first to ask."""
        properties = {
            "client.quota.callback.class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
            f"{_STATIC}kafka.admin.bootstrap.servers": broker.address,
            f"{_STATIC}storage.per.volume.limit.min.available.bytes": str(limit_bytes),
        }
        if polls.peer_s is not None:
            properties[f"{_STATIC}storage.check-interval"] = str(polls.peer_s)
        return properties

    async def obey(self, cluster: Cluster, polls: Polls, limit_bytes: int) -> None:  # noqa: ARG002 - the interface
        """The plugin polls as soon as its broker serves; by then an interval has passed."""
        await asyncio.sleep(polls.peer_s or 0)


class Ours(Nothing):
    """The quota callback of this repository, and a sidecar beside every broker."""

    key = "ours"
    name = "throttle-sidecar"
    refusing = REFUSING_PROPERTIES

    async def jars(self) -> tuple[Path, ...]:
        """The one that Maven built."""
        return (callback_jar(),)

    def properties(self, broker: Broker, polls: Polls, limit_bytes: int) -> dict[str, str]:  # noqa: ARG002 - the interface
        """All defaults but the sidecar's address."""
        return {**CALLBACK_PROPERTIES, **asks_its_sidecar(broker)}

    async def obey(self, cluster: Cluster, polls: Polls, limit_bytes: int) -> None:
        """Start the sidecars, with all defaults but the emergency horizon.

        These volumes have room for minutes of what leaks. With the default of 10 minutes that would
        be an emergency, in which pauses may be longer than ``pause.max``.
        """
        limit = {_SIDECAR_LIMIT: str(limit_bytes), "SIDECAR_THROTTLE_EMERGENCY_HORIZON": "PT1M"}
        await start_sidecars(cluster, {**limit, **polls.ours})
        await callbacks_read(cluster)


class ClientQuotas(Nothing):
    """Stock brokers, and a sidecar beside each that lowers client quotas."""

    key = "quotas"
    name = "client quotas"

    def __init__(self, floor: int, *, reads_log: bool = False, reads_metrics: bool = False) -> None:
        """Start nothing yet.

        Args:
            floor: the lowest quota, bytes/s.
            reads_log: whether each sidecar reads its broker's request log.
            reads_metrics: whether they read the first broker's metrics, by a JMX exporter.
        """
        self._floor = floor
        self._reads_log = reads_log
        self._reads_metrics = reads_metrics

    async def obey(self, cluster: Cluster, polls: Polls, limit_bytes: int) -> None:
        """Start the sidecars."""
        settings = {
            "SIDECAR_ENFORCEMENT": "client-quotas",
            "SIDECAR_CLIENT_QUOTA_FLOOR": str(self._floor),
            _SIDECAR_LIMIT: str(limit_bytes),
        }
        if self._reads_metrics:
            settings["SIDECAR_BROKER_METRICS_URLS"] = f"0={await export_metrics(cluster, 0)}"
        if not self._reads_log:
            await start_sidecars(cluster, {**settings, **polls.ours})
            return
        admin = KafkaAdmin(bootstrap_servers=addresses(cluster.bootstrap))
        levels = dict.fromkeys(cluster.brokers, "DEBUG")
        found = await set_levels(admin, levels, REQUEST_LOGGER)
        if found != levels:
            raise ClusterError(f"the request log can't be turned on: {found}")
        peers = ",".join(each.sidecar_url for each in cluster.brokers.values())

        def own(broker: Broker) -> dict[str, str]:
            log = {"SIDECAR_REQUEST_LOG_FILE": f"{broker.log}.requests"}
            if len(cluster.brokers) == 1:
                return log
            return {**log, "SIDECAR_PEERS": peers, "SIDECAR_BROKER_ID": str(broker.id)}

        sidecars = await start_sidecars(cluster, {**settings, **polls.ours}, own)
        async with deadline(_LOG_S, "the request logs were not read for a minute"):
            for sidecar in sidecars:
                while not await _log_is_whole(sidecar):  # noqa: ASYNC110 - read over HTTP
                    await asyncio.sleep(1.0)


async def _log_is_whole(sidecar: Sidecar) -> bool:
    """Whether the sidecar knows how much all clients write to its broker."""
    answer = await sidecar.get("/v1/client-quotas/writers")
    return answer.document().get("rates") is not None


Throttle = Nothing
NOTHING: Final = Nothing()
PEER: Final = Peer()
OURS: Final = Ours()


async def cluster_of(
    throttle: Throttle,
    polls: Polls,
    limit_bytes: int,
    properties_of: Callable[[Broker], Mapping[str, str]] | None = None,
    **more: Any,  # noqa: ANN401 - as Cluster takes them
) -> Cluster:
    """A cluster, not yet entered, whose brokers have a throttle; ``more`` is as of ``Cluster``."""
    return Cluster(
        environ=os.environ,
        properties_of=properties_of
        or (lambda broker: throttle.properties(broker, polls, limit_bytes)),
        broker_jars=await throttle.jars(),
        **more,
    )


def check_volumes(cluster: Cluster) -> None:
    """Raises a ClusterError unless each volume is a file system of its own."""
    if not cluster.volumes_are_real:
        raise ClusterError(f"this needs real volumes: {cluster.isolation.why_not}")


async def callbacks_read(cluster: Cluster) -> None:
    """Wait until every broker's callback has read its sidecar.

    Raises:
        ClusterError: one did not within 30 s.
    """
    async with deadline(30.0, "the callbacks did not read their sidecars"):
        for broker_id in cluster.brokers:
            while not await _has_read(cluster, broker_id):  # noqa: ASYNC110 - read over JMX
                await asyncio.sleep(0.2)


async def _has_read(cluster: Cluster, broker_id: int) -> bool:
    reported = await bean(cluster, broker_id, CALLBACK_BEAN)
    return str(reported["Source"]).upper() == "SIDECAR"


def _resolve(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ClusterError("mvn is missing; on Debian: apt-get install -y maven")
    goal = "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies"
    words = ["--batch-mode", "--quiet", f"--file={_POM}", f"-DoutputDirectory={folder}", goal]
    done = subprocess.run([maven, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterError(f"Maven found no jars of the plugin:\n{done.stdout[:1000]}")
