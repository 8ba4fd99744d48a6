"""What throttles: the callback alone, with the authorizer, or a quota of Kafka's own.

Ours are throttled by an override at each sidecar, as by an operator. Kafka's own quota is what one
sets without us: 1 % of each client's rate, by its client-id. Its pauses are of minutes, so what
lands behind them is not seen in a short run.
"""

import asyncio
import json
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.enforcement.contenders import LEAK_RATIO
from kafka_lab.callback import CALLBACK_PROPERTIES, asks_its_sidecar
from kafka_lab.cluster import Cluster
from kafka_lab.sidecar_processes import start_sidecars, write_token
from kafka_lab.waiting import deadline
from sidecar.errors import ClusterError
from sidecar.kafka.client_quotas import alter_client_quotas
from sidecar.settings import KafkaAdmin
from sidecar.settings.convert import addresses
from tests.support.java import bean

CALLBACK_BEAN: Final = "throttlesidecar:type=QuotaCallback"
_LIMIT_BYTES: Final = 1 << 20
_OBEYS_TIMEOUT_S: Final = 30.0
_CHECK_S: Final = 0.2
_RATE_KEY: Final = "producer_byte_rate"


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of throttling.

    Attributes:
        key: short, for names of files.
        title: for a reader.
        is_ours: whether the callback throttles; else Kafka.
        properties: the brokers', besides the callback's.
    """

    key: str
    title: str
    is_ours: bool
    properties: Mapping[str, str]


ARMS: Final = {
    arm.key: arm
    for arm in (
        Arm("callback", "The callback alone", True, {}),
        Arm(
            "authorizer",
            "With the authorizer",
            True,
            {
                "authorizer.class.name": "throttlesidecar.SidecarAuthorizer",
                "allow.everyone.if.no.acl.found": "true",
            },
        ),
        Arm("quota", "Without us, Kafka's own quota of 1 %", False, {}),
    )
}
WITHOUT: Final = "quota"
"""The key of the arm without us."""
OURS: Final = tuple(arm.key for arm in ARMS.values() if arm.is_ours)


def cluster_properties(arm: Arm, jar: Path) -> dict[str, object]:
    """What ``Cluster`` gets, so that an arm can throttle."""
    if not arm.is_ours:
        return {}
    return {
        "properties": {**CALLBACK_PROPERTIES, **arm.properties},
        "properties_of": asks_its_sidecar,
        "broker_jars": (jar,),
    }


class Throttle:
    """Throttles the clients of a cluster, and releases them."""

    def __init__(self, arm: Arm, cluster: Cluster, client_ids: Sequence[str], rate: float) -> None:
        """Nothing is throttled yet.

        Args:
            arm: how.
            cluster: it runs.
            client_ids: whom.
            rate: bytes/s of each of them.
        """
        self._arm = arm
        self._cluster = cluster
        self._client_ids = client_ids
        self._rate = rate
        self._urls: list[str] = []
        self._headers: dict[str, str] = {}

    async def prepare(self) -> None:
        """Start the sidecars, and wait until every callback has heard from its own."""
        if not self._arm.is_ours:
            return
        token = write_token(self._cluster)
        settings = {
            "SIDECAR_STORAGE_PER_VOLUME_LIMIT_MIN_AVAILABLE_BYTES": str(_LIMIT_BYTES),
            "SIDECAR_TOKEN_FILE": str(token),
        }
        self._urls = [each.url for each in await start_sidecars(self._cluster, settings)]
        self._headers = {
            "Authorization": f"Bearer {token.read_text().strip()}",
            "Content-Type": "application/json",
        }
        async with deadline(_OBEYS_TIMEOUT_S, "the callbacks did not hear from their sidecars"):
            for broker in self._cluster.brokers:
                while True:
                    reported = await bean(self._cluster, broker, CALLBACK_BEAN)
                    if str(reported["Source"]).upper() == "SIDECAR":
                        break
                    await asyncio.sleep(_CHECK_S)

    async def begin(self) -> None:
        """Throttle."""
        if self._arm.is_ours:
            await self._override(0.0)
        else:
            await self._quota(LEAK_RATIO * self._rate)

    async def end(self) -> None:
        """Release."""
        await (self._override(None) if self._arm.is_ours else self._quota(None))

    async def _override(self, factor: float | None) -> None:
        """Set the factor by hand; None: no longer."""
        document = {"factor": factor, "reason": "make bench-clients", "duration": "PT1H"}
        body = None if factor is None else json.dumps(document).encode()

        def one(url: str) -> None:
            request = urllib.request.Request(
                f"{url}/v1/override",
                data=body,
                headers=self._headers,
                method="DELETE" if body is None else "PUT",
            )
            urllib.request.urlopen(request, timeout=5.0).close()

        await asyncio.gather(*(asyncio.to_thread(one, each) for each in self._urls))

    async def _quota(self, rate: float | None) -> None:
        admin = KafkaAdmin(bootstrap_servers=addresses(self._cluster.bootstrap))
        alterations = [({"client-id": each}, {_RATE_KEY: rate}) for each in self._client_ids]
        failure = await alter_client_quotas(admin, alterations)
        if failure is not None:
            raise ClusterError(f"the quotas can't be set: {failure.message}")
