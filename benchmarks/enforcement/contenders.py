"""What is measured: brokers with Strimzi's plugin, with our callback, with neither.

A contender says which jars and properties its brokers get and, for ours, which settings its
sidecars; how often it polls the volumes is the scenario's choice (``PollIntervals``).
"""

import asyncio
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from kafka_lab.cache import cache_folder, filling
from kafka_lab.callback import (
    CALLBACK_PROPERTIES,
    REFUSING_PROPERTIES,
    asks_its_sidecar,
)
from kafka_lab.cluster import Cluster
from kafka_lab.nodes import Broker
from kafka_lab.sidecar_processes import start_sidecars
from kafka_lab.waiting import deadline
from sidecar.cli.callback.jar import callback_jar
from sidecar.errors import ClusterError
from tests.support.java import bean

PAUSE_MAX_S: Final = 4.0
"""The callback's default pause.max."""
LEAK_RATIO: Final = 0.01
"""The callback's default leak.ratio."""

_POM: Final = Path(__file__).with_name("peer.xml")
_MAVEN_TIMEOUT_S: Final = 300.0
_OBEYS_TIMEOUT_S: Final = 30.0
_STATIC: Final = "client.quota.callback.static."


@dataclass(frozen=True, slots=True)
class PollIntervals:
    """How often the volumes are polled.

    Attributes:
        peer_interval_s: the plugin's storage.check-interval; None leaves its default of 60 s.
        ours: the sidecar's settings for the same; none leave its default: at most a minute, less
            when a volume is nearer to its limit than that.
    """

    peer_interval_s: int | None
    ours: Mapping[str, str]

    @property
    def period_s(self) -> float:
        """From one poll of the plugin to the next, seconds."""
        return 60.0 if self.peer_interval_s is None else float(self.peer_interval_s)


SHORTEST: Final = PollIntervals(
    2,
    {
        "SIDECAR_STORAGE_CHECK_INTERVAL": "PT1S",
        "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": "PT0.1S",
    },
)
"""As often as each can: the plugin's requests time out after 0 s when its interval is 1 s."""

DEFAULT: Final = PollIntervals(None, {})
"""As it comes."""

EVERY_2_S: Final = PollIntervals(
    2,
    {
        "SIDECAR_STORAGE_CHECK_INTERVAL": "PT2S",
        "SIDECAR_STORAGE_CHECK_INTERVAL_MINIMUM": "PT2S",
    },
)
"""Both equally often, to compare what a poll costs."""


class Contender(Protocol):
    """What stands between producers and a full disk.

    Attributes:
        key: short, for names of files.
        name: for a reader.
        refusing: what its brokers have, too, to refuse what pauses can't stop.
    """

    key: str
    name: str
    refusing: Mapping[str, str]

    async def jars(self) -> tuple[Path, ...]:
        """What its brokers need on their class path."""
        ...

    def properties(self, broker: Broker, polls: PollIntervals, limit_bytes: int) -> dict[str, str]:
        """What a broker is configured with."""
        ...

    async def obey(self, cluster: Cluster, polls: PollIntervals, limit_bytes: int) -> None:
        """Start what stands beside the brokers; returns when a full volume would have an effect."""
        ...


class Nothing:
    """Kafka as it is."""

    key = "none"
    name = "no callback"
    refusing: Mapping[str, str] = MappingProxyType({})

    async def jars(self) -> tuple[Path, ...]:
        """None."""
        return ()

    def properties(self, broker: Broker, polls: PollIntervals, limit_bytes: int) -> dict[str, str]:  # noqa: ARG002 - the protocol's
        """None."""
        return {}

    async def obey(self, cluster: Cluster, polls: PollIntervals, limit_bytes: int) -> None:
        """Nothing to wait for."""


class Peer:
    """Strimzi's plugin: every broker polls all volumes by itself."""

    key = "peer"
    name = "Strimzi's plugin 0.3.1"
    refusing: Mapping[str, str] = MappingProxyType({})

    async def jars(self) -> tuple[Path, ...]:
        """Those of Maven's central repository, downloaded once."""
        key = hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]
        target = cache_folder(os.environ) / f"peer-{key}"
        async with deadline(_MAVEN_TIMEOUT_S, "the plugin's jars did not come"):
            if not target.is_dir():
                async with filling(target) as folder:
                    if folder is not None:
                        await asyncio.to_thread(_resolve, folder)
        return tuple(sorted(target.glob("*.jar")))

    def properties(self, broker: Broker, polls: PollIntervals, limit_bytes: int) -> dict[str, str]:
        """The plugin's own, with its broker as the first to ask."""
        properties = {
            "client.quota.callback.class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
            f"{_STATIC}kafka.admin.bootstrap.servers": broker.address,
            f"{_STATIC}storage.per.volume.limit.min.available.bytes": str(limit_bytes),
        }
        if polls.peer_interval_s is not None:
            properties[f"{_STATIC}storage.check-interval"] = str(polls.peer_interval_s)
        return properties

    async def obey(self, cluster: Cluster, polls: PollIntervals, limit_bytes: int) -> None:  # noqa: ARG002 - the protocol's
        """It polls as soon as its broker serves; by then an interval of seconds has passed."""
        await asyncio.sleep(polls.peer_interval_s or 0)


class Ours:
    """The callback in this repository, and a sidecar beside every broker."""

    key = "ours"
    name = "throttle-sidecar"
    refusing: Mapping[str, str] = REFUSING_PROPERTIES

    async def jars(self) -> tuple[Path, ...]:
        """The one that Maven built."""
        return (callback_jar(),)

    def properties(self, broker: Broker, polls: PollIntervals, limit_bytes: int) -> dict[str, str]:  # noqa: ARG002 - the sidecar's business
        """All defaults but the sidecar's address."""
        return {**CALLBACK_PROPERTIES, **asks_its_sidecar(broker)}

    async def obey(self, cluster: Cluster, polls: PollIntervals, limit_bytes: int) -> None:
        """Start the sidecars and wait until every callback has heard from its own.

        All defaults but the horizon, which is for volumes of a disk's size: these here have room
        for minutes of what leaks, and with the default of 10 minutes that would be an emergency, in
        which pauses may be longer than ``pause.max``.
        """
        limit = {
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(limit_bytes),
            "SIDECAR_THROTTLE_EMERGENCY_HORIZON": "PT1M",
        }
        await start_sidecars(cluster, {**limit, **polls.ours})
        async with deadline(_OBEYS_TIMEOUT_S, "the callbacks did not hear from their sidecars"):
            for broker_id in cluster.brokers:
                while not await _has_heard(cluster, broker_id):  # noqa: ASYNC110 - asked over JMX
                    await asyncio.sleep(0.2)


async def _has_heard(cluster: Cluster, broker_id: int) -> bool:
    reported = await bean(cluster, broker_id, "throttlesidecar:type=QuotaCallback")
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


NOTHING: Final = Nothing()
PEER: Final = Peer()
OURS: Final = Ours()
